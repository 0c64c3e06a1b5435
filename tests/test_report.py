"""The page: everything in one file, nothing from outside, the same bytes from the same results, and readable."""

import base64
import html
import json
import re
import shutil
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from photonlab import paths
from photonlab.lab.judge import claims, results, verdicts
from photonlab.lab.measure import noise
from photonlab.lab.publish import page_check, profiles, report, rundir, runner, sections, summary
from photonlab.machine import fingerprint
from tests import browser

FIXTURES = Path(__file__).parent / "notebooks"
MACHINE = {"processor": {"model": "Some CPU <1>", "caches": ["L1", "L2"]}, "memory": {"total": "unknown"}}
NOISE = noise.Noise(0.002, 0.03, 12, 0.001)
CELLS = {"seconds": 4.0, "disturbed seconds": 0.1, "disturbed cells": {"4": "the host took 1.5% of the CPUs' time"}}
ROUNDS = {"comparisons": 2, "rounds": 90, "retaken": 10, "disturbed": 0, "cells": CELLS}
needs_chromium = pytest.mark.skipif(browser.CHROMIUM is None, reason="chromium is missing: .ci/run installs it")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Two runs of the fixture notebook whose machine, time and results are equal; the first one's folder."""
    base = tmp_path_factory.mktemp("report")
    books = base / "notebooks"
    books.mkdir()
    shutil.copy(FIXTURES / "page.ipynb", books)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1800000000")
        patch.setattr(profiles, "load", lambda file=None: {"smoke": {"limits": {"cell_seconds": 120}}})
        patch.setattr(fingerprint, "collect", lambda: MACHINE)
        patch.setattr(noise.Gauge, "noise", NOISE, raising=False)
        patch.setattr(noise.Gauge, "__exit__", lambda *_: None)
        patch.setattr(rundir, "read_rounds", lambda *_: ROUNDS)
        for name in ("first", "second"):
            given = {"page": {"messages": "2e3", "symbol": "<i>NAN</i>"}}
            runner.run_report("smoke", out=base / name, notebooks=books, given=given, tell=len)
    return base / "first"


@pytest.fixture(scope="module")
def page(run):
    return (run / "report.html").read_text()


# ------------------------------------------------------------------------------------------------ the whole page


def test_equal_results_give_equal_pages(run):
    again = run.parent / "second"
    for name in ("report.html", "verdicts.json", "machine.json", "results.csv", "results.parquet"):
        assert (run / name).read_bytes() == (again / name).read_bytes(), name
    pictures = sorted(path.name for path in (run / "figures").iterdir())
    assert pictures == ["page-lookup.svg", "page-walk.png"]
    for name in pictures:
        assert (run / "figures" / name).read_bytes() == (again / "figures" / name).read_bytes(), name
    assert report.build(run) == (run / "report.html").read_text()


def test_the_page_keeps_its_promise(page):
    """Trap 26; what `problems` looks for is tested below."""
    assert page_check.problems(page) == []
    assert not re.search(r"<script|https?://(?!www\.w3\.org/)", page)
    assert len(page) < 1_000_000


def test_run_folder_is_complete(run):
    assert {path.name for path in run.iterdir()} == {
        "report.html", "notebooks", "figures", "rows", "results.csv", "results.parquet", "verdicts.json",
        "machine.json", "run.json",
    }  # fmt: skip
    facts = rundir.read_facts(run)
    assert (facts["status"], facts["profile"], facts["started"]) == ("complete", "smoke", "2027-01-15T08:00:00Z")
    assert facts["notebooks"]["page"]["parameters"] == {"messages": 2000, "symbol": "<i>NAN</i>"}


def test_every_claim_stands_in_the_verdict_table(page):
    for claim in claims.load():
        assert re.search(rf'<th scope="row">(<a href="#[^"]+">)?{claim.id}(</a>)?</th>', page), claim.id
        assert claim.title in html.unescape(page)
    assert page.index('id="verdicts"') < page.index('id="machine"') < page.index('id="page"')


def test_claim_links_to_its_section_and_value_to_its_cell(run, page):
    one = next(verdict for verdict in report.judged(run) if verdict.claim == "R8")
    assert '<a href="#page--r8-masking-in-place-of-modulo">R8</a>' in page
    if one.value is not None:
        assert 'href="#page--cell-6"' in page
    assert '<h3 id="page--r8-masking-in-place-of-modulo">' in page
    assert '<div class="cell" id="page--cell-6">' in page


def test_values_given_from_outside_are_text_on_the_page(page):
    assert "<i>NAN</i>" not in re.sub(r'<div class="prose computed">.*?</div>', "", page, flags=re.DOTALL)
    assert "Some CPU &lt;1&gt;" in page


def test_code_is_folded_and_defaults_give_way_to_given_values(page):
    assert page.count('<details class="code">') == 7
    assert page.count("<summary>Parameters</summary>") == 1
    assert "010" not in page.split("<summary>Parameters</summary>")[1].split("</details>")[0]


def test_only_the_claims_of_chosen_notebooks(run):
    facts = rundir.read_facts(run) | {"only": True}
    shown = re.findall(r'<th scope="row">(?:<a [^>]+>)?([A-Z]\d+)(?:</a>)?</th>', report.build(run, facts))
    assert shown == []  # no claim is judged by the fixture


def test_altered_results_alter_verdict_and_prose(run, tmp_path):
    """Nothing on the page is typed: from other rows come other verdicts."""
    claim = claims.by_id()["R8"]
    altered = tmp_path / "altered"
    shutil.copytree(run, altered)
    (altered / "results.parquet").unlink()
    seen = set()
    for value, low, high in ((20.0, 19.0, 21.0), (0.5, 0.4, 0.6), (1.01, 0.9, 1.1)):
        row = json.loads((run / "rows" / "page.jsonl").read_text()) | {"value": value, "low": low, "high": high}
        row |= {"notebook": claim.notebook, "statistic": claim.checks[0].get("statistic", "ratio")}
        (altered / "rows" / "page.jsonl").write_text(json.dumps(row) + "\n")
        judged = report.judged(altered)
        one = next(verdict for verdict in judged if verdict.claim == "R8")
        seen.add(one.verdict)
        text = report.build(altered)
        assert f"{one.verdict}</span> <b>{sum(v.verdict == one.verdict for v in judged)}</b>" in text
    assert len(seen) >= 2, seen


def test_machine_is_asked_when_nobody_pretends():
    collected = report.machine()
    assert all(isinstance(values, dict) for values in collected.values())
    json.dumps(collected)


# ------------------------------------------------------------------------------------ what the page must not hold


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        ('<script src="https://cdn.example/x.js"></script>', "<script>"),
        ("<script>1</script>", "<script>"),
        ('<link rel="stylesheet" href="https://cdn.example/x.css">', "leads outside"),
        ('<link rel="stylesheet" href="x.css">', "loads href"),
        ('<img alt="x" src="https://cdn.example/x.png">', "loads src"),
        ('<img alt="x" src="x.png">', "loads src"),
        ('<img alt="x" srcset="x.png 2x">', "loads srcset"),
        ('<img src="data:image/png;base64,AAAA">', "without a text alternative"),
        ('<img alt=" " src="data:image/png;base64,AAAA">', "without a text alternative"),
        ('<a href="https://example.com">x</a>', "leads outside"),
        ('<a href="//example.com">x</a>', "leads outside"),
        ('<a href=" javascript:1">x</a>', "leads outside"),
        ("<style>@import 'x.css';</style>", "style that loads"),
        ("<style>@font-face{src:url(x.woff2)}</style>", "style that loads"),
        ('<p style="background:url(//x/y.png)">x</p>', "style loads"),
        ('<p onclick="1">x</p>', "script onclick"),
        ('<iframe src="data:text/html,x"></iframe>', "<iframe>"),
        ('<object data="x.svg"></object>', "<object>"),
        ('<svg><use xlink:href="https://x/y.svg#z"/></svg>', "leads outside"),
        ('<svg><image href="y.png"/></svg>', "loads href"),
        ('<video poster="x.png"></video>', "<video>"),
        ('<p id="a"></p><p id="a"></p>', "occur twice"),
        ('<a href="#nowhere">x</a>', "not there"),
        ("<p>" + "x" * 6_000_000, "bytes"),
    ],
)
def test_planted_faults_are_found(planted, words):
    assert any(words in problem for problem in page_check.problems(f"<!DOCTYPE html><html><body>{planted}"))


@pytest.mark.parametrize(
    "svg",
    ["<svg><script>1</script></svg>", '<svg onload="1"/>', '<svg><image href="http://x/y"/></svg>',
     "<svg><style>@import url(x)</style></svg>", "<svg><foreignObject/></svg>"],
)  # fmt: skip
def test_faults_inside_a_picture_are_found(svg):
    source = base64.b64encode(svg.encode()).decode()
    assert page_check.problems(f'<img alt="x" src="data:image/svg+xml;base64,{source}">')


def test_harmless_things_are_not_faults():
    good = (
        '<a id="a" href="#a">x</a><a href="results.csv">x</a><style>p{background:url(data:,)}#b{fill:url(#c)}</style>'
        '<img alt="x" src="data:image/png;base64,AAAA"><code>&lt;script src=https://x&gt;</code><p>see https://x.example</p>'
    )
    assert page_check.problems(good) == []


def test_a_page_with_a_fault_is_not_written(run, tmp_path):
    """Half a page never looks done: the older one goes and no new one comes."""
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    (copy / "report.html").unlink()
    path = copy / "notebooks" / "page.ipynb"
    book = nbformat.read(path, 4)
    book.cells[0].source += '\n\n<img src="https://example.com/x.png" alt="x">'
    nbformat.write(book, path)
    with pytest.raises(report.ReportError, match="loads src"):
        report.write(copy, rundir.read_facts(copy))
    assert not (copy / "report.html").exists()


# --------------------------------------------------------------------------------------------------- a section


def book(*cells):
    """Markdown cells from text, code cells from lists of outputs."""
    made = [nbformat.v4.new_markdown_cell("# Title")]
    for cell in cells:
        if isinstance(cell, str):
            made.append(nbformat.v4.new_markdown_cell(cell))
        else:
            made.append(nbformat.v4.new_code_cell("1", outputs=cell, execution_count=1))
    return nbformat.v4.new_notebook(cells=made)


def shown(**data):
    return [nbformat.v4.new_output("display_data", {name.replace("__", "/"): value for name, value in data.items()})]


@pytest.mark.parametrize(
    "outputs",
    [
        shown(image__png="AAAA", text__plain="<Figure>"),
        [nbformat.v4.new_output("display_data", {"image/svg+xml": "<svg/>", "text/plain": "x"})],
        [nbformat.v4.new_output("display_data", {"application/javascript": "1", "text/plain": "x"})],
        [nbformat.v4.new_output("display_data", {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "x"})],
        [nbformat.v4.new_output("display_data", {"application/pdf": "x"})],
    ],
)
def test_outputs_that_not_everybody_can_read_are_refused(outputs):
    with pytest.raises(sections.ReportError, match="name, cell 2"):
        sections.section("name", book(outputs))


def test_maths_is_mathml():
    body = sections.section("n", book("where $x^2 < y$ and\n\n$$\\frac{a}{b}$$\n\nbut 5 \\$ stay")).body
    assert body.count("<math") == 2
    assert "<msup>" in body
    assert "<mfrac>" in body
    assert 'aria-label="x^2 &lt; y"' in body
    assert "5 $ stay" in body


def test_maths_that_cannot_be_shown_is_an_error():
    with pytest.raises(sections.ReportError, match="name: not LaTeX"):
        sections.section("name", book("$x^a^b$"))


def test_headings_go_one_level_down_and_keep_apart():
    made = sections.section("nb", book("## Same", "## Same", "### F3: shares & <em>so</em>", "## M1 and M2"))
    assert re.findall(r'<h(\d) id="([^"]+)"', made.body) == [
        ("2", "nb"), ("3", "nb--same"), ("3", "nb--same-2"), ("4", "nb--f3-shares-so"), ("3", "nb--m1-and-m2"),
    ]  # fmt: skip
    assert made.places == {"F3": "nb--f3-shares-so", "M1": "nb--m1-and-m2", "M2": "nb--m1-and-m2"}


def test_a_claim_without_a_heading_of_its_own_is_found_by_the_cell_that_records_it():
    notebook = book("## A part", "text", "## Another")
    notebook.cells.insert(3, nbformat.v4.new_code_cell('nb.record("A5", value=1, unit="1")', execution_count=1))
    made = sections.section("nb", notebook)
    assert made.places == {"A5": "nb--a-part"}
    assert made.cells == {"A5": "nb--cell-4"}


def test_output_text_is_escaped_and_removed_cells_are_gone():
    stream = [nbformat.v4.new_output("stream", name="stdout", text="<b> & \x1b[31mred\x1b[0m")]
    notebook = book(stream, stream)
    notebook.cells[1].metadata["tags"] = ["remove-cell"]
    body = sections.section("nb", notebook).body
    assert body.count("&lt;b&gt; &amp;") == 1
    assert "\x1b" not in body


def test_a_notebook_needs_a_title():
    with pytest.raises(sections.ReportError, match="no title"):
        sections.section("nb", nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("text")]))


# ------------------------------------------------------------------------------------------------- the summary


def test_the_sentence_counts_every_claim_once():
    nothing = verdicts.judge(claims.load(), results.collect(Path("/nonexistent")))
    text = summary.sentence(nothing)
    counted = [int(number) for number in re.findall(r"\*\*(\d+)\*\*", text)]
    assert sum(counted) == len(nothing)
    assert summary.sentence([v for v in nothing if v.verdict == "not built yet"]).startswith("None of the")
    known = {*summary.AGREE, *summary.DISAGREE, *summary.OPEN, *summary.UNSAID, *summary.BESIDE}
    assert known == set(verdicts.WORDS)


def test_counts_by_source_add_up():
    judged = verdicts.judge(claims.load(), results.collect(Path("/nonexistent")))
    frame = summary.by_source(judged)
    assert frame["claims"].iloc[-1] == len(judged) == frame["claims"].iloc[:-1].sum()
    assert (frame.iloc[:, 1:-1].sum(axis=1) == frame["claims"]).all()
    assert len(summary.everything(judged)) == len(judged)


def test_every_chart_and_table_has_an_anchor(page):
    """Also the table that a notebook shows between charts, and each caption leads to its own."""
    section = page[page.index('<section class="notebook"') :]
    anchors = re.findall(r'<(?:figure|div)[^>]* id="(page--(?:figure|table)-\d)"', section)
    assert anchors == ["page--figure-1", "page--figure-2", "page--table-1"]
    assert re.findall(r'<a class="anchor" href="#([^"]+)"', section) == anchors


REFERENCE = paths.DATA / "reference" / "quick"


def altered(folder, change):
    """The reference run, its rows changed; its page, as text and as a reader sees it."""
    shutil.copytree(REFERENCE, folder)
    frame = pd.read_csv(folder / "results.csv", keep_default_na=False, dtype=str).astype(object)
    change(frame).to_csv(folder / "results.csv", index=False)
    facts = rundir.read_facts(folder) | {"notebooks": {}}
    text = report.build(folder, facts)
    return text, html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", text, flags=re.DOTALL))


def scaled(factor):
    def change(frame):
        for name in ("value", "low", "high"):
            frame[name] = [str(float(cell) * factor) if cell else cell for cell in frame[name]]
        return frame

    return change


def turned(frame):
    """Every ratio the other way round."""
    for at, row in frame.iterrows():
        if row["unit"] == "×" and all(float(row[name] or 0) > 0 for name in ("value", "low", "high")):
            frame.loc[at, ["value", "low", "high"]] = [str(1 / float(row[name])) for name in ("value", "high", "low")]
    return frame


def emptied(frame):
    frame[["value", "low", "high"]] = ""
    frame["note"] = "the probe said no"
    return frame


@pytest.mark.parametrize(
    "change",
    [lambda frame: frame, scaled(0), scaled(-1), scaled(1e-9), scaled(1e12), turned, emptied,
     lambda frame: frame.iloc[:0], lambda frame: frame.iloc[::3], lambda frame: frame.assign(low="", high="")],
    ids=["as it was", "nothing", "negative", "tiny", "huge", "turned", "emptied", "no rows", "a third", "no intervals"],
)  # fmt: skip
def test_the_page_reads_right_from_whatever_rows(tmp_path, change):
    text, read = altered(tmp_path / "run", change)
    assert page_check.problems(text) == []
    for word in ("nan", "None", "inf", "NaT", "{", "}"):
        assert not re.search(rf"(?<![\w]){re.escape(word)}(?![\w])", read), word
    assert len(re.findall(r'<tr class="claim"', text)) == len(claims.load())
    counted = sum(int(count) for count in re.findall(r"</span> <b>(\d+)</b></li>", text))
    assert counted == len(claims.load())


def test_no_verdict_agrees_when_every_ratio_is_turned(tmp_path):
    """What held because a ratio said so cannot hold with the ratio turned round."""

    def words(change, name):
        text, _ = altered(tmp_path / name, change)
        found = re.findall(r'id="claim-(\w+)" data-verdict="([^"]+)"', text)
        return {claim for claim, verdict in found if verdict in summary.AGREE}, dict(found)

    held, _ = words(lambda frame: frame, "plain")
    after, every = words(turned, "turned")
    lost = held - after
    assert len(lost) >= 5 and all(every[claim] != "not run" for claim in lost), (held, after)
    nothing, _ = words(emptied, "emptied")
    exact = {claim.id for claim in claims.load() if claim.kind == "consistency"}
    assert nothing <= exact


def test_rows_lead_to_their_cells_and_claims(run, page):
    """Any claim's evidence in two clicks: verdict → section, row → cell."""
    rows = re.findall(r'<details class="rows">(.*?)</details>', page, re.S)[0]
    anchors = set(re.findall(r'id="([^"]+)"', page))
    links = re.findall(r'href="#([^"]+)"', rows)
    assert links and set(links) <= anchors
    recorded = results.read(run)
    assert rows.count("<tr") == len(recorded) + 1
    cells = [link for link in links if link.startswith("page--cell-")]
    assert len(cells) == len(recorded)
    for cell in set(cells):  # and it is that one, not its neighbour
        code = page.partition(f'id="{cell}"')[2].partition("</details>")[0]
        assert "record" in re.sub(r"<[^>]+>", "", code), cell


def test_a_noisy_machine_is_told_at_the_top(run, page, tmp_path):
    assert "This machine was not quiet" in page and "lost 3.0% of its time to gaps of 10 µs" in page
    facts = rundir.read_facts(run)
    for entry in facts["notebooks"].values():
        entry["noise"] = noise.Noise(None, 0.0, 0, 0.0).as_dict()
    assert "not quiet" not in report.build(run, facts)
    entry["rounds"] = {"rounds": 90, "retaken": 10, "disturbed": 1}
    assert "11% of the rounds in turn were disturbed (10 taken again, 1 kept)" in report.build(run, facts)


def test_a_disturbed_cell_is_marked_where_it_stands(page):
    cell = page.partition('id="page--cell-6"')[2].partition('<div class="prose">')[0]
    assert "Disturbed: while this cell ran, the host took 1.5% of the CPUs' time." in cell
    assert page.count("Disturbed: while this cell ran") == 1


def test_how_quiet_each_notebook_was_stands_on_the_page(run):
    kept = json.loads((run / "rows" / "page.rounds.json").read_text())
    cells = kept.pop("cells")
    assert kept == {"comparisons": 0, "rounds": 0, "retaken": 0, "disturbed": 0}, "kept by the notebook"
    assert set(cells) == set(CELLS)
    facts = rundir.read_facts(run)
    entry = facts["notebooks"]["page"]
    assert entry["rounds"] == ROUNDS, "into run.json"
    entry["rounds"] = {"comparisons": 2, "rounds": 1234, "retaken": 56, "disturbed": 7, "cells": CELLS}
    entry["noise"] = noise.Noise(0.25, 0.125, 3, 0.0, 0.5).as_dict()
    text = re.sub(r"<[^>]+>", " ", report.build(run, facts).partition('id="run"')[2])
    shown = "1,234 56 7 4.9 % 2.5 % 12.5 % 25.0 % 50.0 % 0.0 %"
    assert shown in " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())
    del entry["rounds"], entry["noise"]
    assert "– – – – – – – – –" in " ".join(re.sub(r"<[^>]+>", " ", report.build(run, facts)).split())


# --------------------------------------------------------------------------------------------------- a browser


@needs_chromium
def test_the_page_in_a_browser_without_a_network(run, tmp_path):
    """Opens, asks nobody for anything, says nothing in the console, and fits into every width."""
    with browser.Browser() as chromium:
        for width in (400, 800, 1400):
            for scheme in ("light", "dark"):
                chromium.resize(width, 900)
                chromium.media(scheme)
                chromium.open(run / "report.html")
                assert chromium.requests() == [(run / "report.html").as_uri()]
                assert chromium.complaints() == []
                assert chromium.run("document.documentElement.scrollWidth") <= width
        headings = chromium.run("[...document.querySelectorAll('h1,h2,h3')].map(h => h.tagName + ' ' + h.textContent)")
        assert headings[1:3] == ["H2 Verdicts", "H2 Machine"]
        assert "H3 R8: masking in place of modulo" in headings
        assert chromium.run("[...document.images].every(i => i.naturalWidth > 100 && i.alt)") is True
        assert chromium.run("document.querySelector('math mfrac').getBoundingClientRect().height") > 20
        assert chromium.run("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
        folded = "[...document.querySelectorAll('details')].every(d => !d.open)"
        assert chromium.run(folded) is True
        shown = "[...document.querySelectorAll('.claim')].filter(r => r.getClientRects().length).length"
        every = chromium.run(shown)
        chromium.run("document.getElementById('verdict-1').click(); 0")
        some = chromium.run(shown)
        assert 0 < some < every == len(claims.load())
        chromium.run("document.getElementById('verdict-all').click(); document.getElementById('source-R').click(); 0")
        assert chromium.run(shown) == sum(one.id.startswith("R") for one in claims.load())
        chromium.run("document.getElementById('source-all').click(); 0")
        assert chromium.run(shown) == every
        if chromium.run("CSS.supports('selector(:target-current)')"):
            chromium.run("document.getElementById('page--a-table').scrollIntoView(); 0")
            chromium.run("new Promise(done => setTimeout(done, 200))")
            current = "[...document.querySelectorAll('nav a')].filter(a => a.matches(':target-current')).length"
            assert chromium.run(current) == 1
        chromium.run("location.hash = '#page--a-table'; 0")
        assert chromium.run("document.querySelector(':target').textContent") == "A table"
        chromium.screenshot(tmp_path / "page.png")
        assert (tmp_path / "page.png").stat().st_size > 20_000


@needs_chromium
def test_an_accessibility_checker_finds_nothing(run):
    """axe: contrast in light and dark, names, roles, structure, at the narrow width and the wide one."""
    axe = pytest.importorskip("axe_core_python", reason="axe-core-python is missing: pip install 'photonlab[browser]'")
    script = (Path(axe.__file__).parent / "axe.min.js").read_text()
    with browser.Browser() as chromium:
        for width, scheme in ((1400, "light"), (1400, "dark"), (400, "light")):
            chromium.resize(width, 900)
            chromium.media(scheme)
            chromium.open(run / "report.html")
            chromium.run("[...document.querySelectorAll('details')].forEach(d => { d.open = true; })")
            chromium.run(script + "; 0")
            found = chromium.run(
                "axe.run({resultTypes: ['violations']}).then(r => r.violations.map(v => v.id + ': ' + v.nodes[0].html))"
            )
            assert found == []


@needs_chromium
def test_print_cuts_no_chart(run):
    """On paper every chart is whole: none is wider than the sheet or higher than what a page holds."""
    with browser.Browser(width=794) as chromium:  # A4 at 96 dots an inch
        chromium.media("light", "print")
        chromium.open(run / "report.html")
        boxes = chromium.run("[...document.querySelectorAll('figure')].map(f => [f.scrollWidth, f.offsetHeight])")
        assert boxes and all(width <= 794 and 0 < height < 1040 for width, height in boxes)
        kept = "[...document.querySelectorAll('figure')].every(f => getComputedStyle(f).breakInside === 'avoid')"
        assert chromium.run(kept) is True
        hidden = "[...document.querySelectorAll('.claim')].every(r => r.getClientRects().length)"
        chromium.run("document.getElementById('verdict-1').click(); 0")
        assert chromium.run(hidden) is True, "a filter does not take claims from the paper"
        pdf = chromium.call("Page.printToPDF", printBackground=True)["data"]
        assert base64.b64decode(pdf).startswith(b"%PDF")


@needs_chromium
def test_the_browser_test_can_fail(tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!DOCTYPE html><link rel=icon href='data:,'><img src='http://example.com/x.png'><script>nothing()</script>"
        "<p style='width:3000px'>wide"
    )
    with browser.Browser(width=400) as chromium:
        chromium.open(bad)
        assert "http://example.com/x.png" in chromium.requests()
        assert any("nothing" in text or "Uncaught" in text for text in chromium.complaints())
        assert chromium.run("document.documentElement.scrollWidth") > 400
