"""A newcomer finds any claim's evidence in two clicks: verdict → section → rows, on the page of the whole whitepaper.

The page is built from the committed notebooks, not run, with the rows of the committed reference run.
"""

import re
import shutil

import nbformat
import pytest

from photonlab import paths
from photonlab.lab.judge import claims, results
from photonlab.lab.publish import report, rundir
from tests import browser

REFERENCE = paths.DATA / "reference" / "quick"
needs_chromium = pytest.mark.skipif(browser.CHROMIUM is None, reason="chromium is missing: .ci/run installs it")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run with the page of all notebooks."""
    folder = tmp_path_factory.mktemp("evidence") / "run"
    shutil.copytree(REFERENCE, folder)
    (folder / "notebooks").mkdir()
    facts = rundir.read_facts(folder)
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        book = nbformat.read(path, 4)
        for number, cell in enumerate((cell for cell in book.cells if cell.cell_type == "code"), 1):
            cell.execution_count = number
        nbformat.write(book, folder / "notebooks" / path.name)
        facts["notebooks"].setdefault(path.stem, {"parameters": {}})
    (folder / "report.html").write_text(report.build(folder, facts))
    return folder


@pytest.fixture(scope="module")
def page(run):
    return (run / "report.html").read_text()


@pytest.mark.parametrize("claim", claims.load(), ids=lambda claim: claim.id)
def test_a_verdict_leads_to_its_section_and_that_to_its_rows(page, claim):
    row = page.partition(f'id="claim-{claim.id}"')[2].partition("</tr>")[0]
    section = re.search(r'<th scope="row"><a href="#([^"]+)">', row)[1]
    assert section.startswith(claim.notebook), "the notebook that judges it"
    heading = page.partition(f'id="{section}">')[2]
    assert re.search(rf"\b{claim.id}\b", heading.partition("</h")[0]), "a heading that names it"
    recorded = results.read(REFERENCE)
    if not len(recorded[(recorded["claim"] == claim.id) & (recorded["notebook"] == claim.notebook)]):
        return  # nothing is measured for it: the text is the evidence
    below = heading.partition("</h")[2].partition("</p>")[0]
    target = re.search(rf'<a href="#([^"]+)">{claim.id}</a>', below)[1]
    rows = page.partition(f'<tr id="{target}">')[2].partition("</tr>")[0]
    assert f'<a href="#claim-{claim.id}">{claim.id}</a>' in rows, "and from there back to the verdict"


def test_only_what_is_arithmetic_has_no_rows():
    recorded = set(results.read(REFERENCE)["claim"])
    assert {claim.id for claim in claims.load()} - recorded == {"R4", "T9", "P6", "S6"}


@needs_chromium
def test_two_clicks_in_a_browser(run):
    """Also where the rows are folded away: the browser opens them for who follows a link."""
    box = "{{const r = {0}.getBoundingClientRect(); return r.height > 0 && r.top < innerHeight && r.bottom > 0;}}"
    seen = f"(() => {box})()"
    with browser.Browser() as chromium:
        for width in (400, 1400):
            chromium.resize(width, 900)
            chromium.open(run / "report.html")
            for claim in ("R8", "A4", "P11", "T7", "M2"):
                verdict = f"document.getElementById('claim-{claim}')"
                chromium.run(f"{verdict}.querySelector('th a').click(); 0")
                assert chromium.run(seen.format("document.querySelector(':target')")), claim
                follow = "document.querySelector(':target').nextElementSibling"
                chromium.run(f"[...{follow}.querySelectorAll('a')].find(a => a.textContent === '{claim}').click(); 0")
                chromium.run("new Promise(done => setTimeout(done, 50))")
                assert chromium.run(seen.format("document.querySelector(':target')")), claim
                assert chromium.run("document.querySelector(':target').closest('details').open") is True
            assert chromium.run("document.documentElement.scrollWidth") <= width
            assert chromium.complaints() == []
