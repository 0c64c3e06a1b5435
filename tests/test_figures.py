"""Charts and tables that everybody can read, and that have the same bytes every time."""

import re

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from photonlab.lab.publish import figures, tables


@pytest.fixture
def out(tmp_path, monkeypatch):
    monkeypatch.setenv("PHOTONLAB_OUT", str(tmp_path))
    with plt.rc_context():
        figures.use_style()
        yield tmp_path
    plt.close("all")


def chart(points=10, **labels):
    fig, axes = plt.subplots()
    axes.plot(np.arange(points), np.arange(points))
    axes.set(**({"xlabel": "size [bytes]", "ylabel": "time [ns]"} | labels))
    return fig


def test_few_points_are_svg_and_many_are_png(out, capsys):
    figures.save(chart(figures.POINTS), "few", "a line", "caption")
    figures.save(chart(figures.POINTS + 1), "many", "a line", "caption")
    assert sorted(path.name for path in (out / "figures").iterdir()) == ["few.svg", "many.png"]
    assert not plt.get_fignums()
    figures.save(chart(5), "many", "a line", "caption")
    assert sorted(path.name for path in (out / "figures").iterdir()) == ["few.svg", "many.svg"]


def test_the_same_figure_has_the_same_bytes(out, capsys):
    for name in ("one", "two", "big-one", "big-two"):
        figures.save(chart(2000 if "big" in name else 20), name, "a line", "caption")
    files = {path.stem: path.read_bytes() for path in (out / "figures").iterdir()}
    assert files["one"] == files["two"]
    assert files["big-one"] == files["big-two"]
    text = files["one"].decode()
    assert "prefers-color-scheme:dark" in text
    assert not re.search("<metadata|<dc:date|<!DOCTYPE", text)


def test_the_figure_is_shown_with_its_text(out, capsys):
    figures.save(chart(), "x", 'a "rising" line', "time < size")
    said = capsys.readouterr().out
    assert 'alt="a &quot;rising&quot; line"' in said
    assert "<figcaption>time &lt; size</figcaption>" in said
    assert "data:image/svg+xml;base64," in said


@pytest.mark.parametrize(
    ("name", "alt", "caption", "labels", "words"),
    [
        ("Bad Name", "a", "c", {}, "lower case"),
        ("x/y", "a", "c", {}, "lower case"),
        ("x", " ", "c", {}, "text alternative"),
        ("x", "a", "", {}, "caption"),
        ("x", "a", "c", {"ylabel": ""}, "y axis has no label"),
        ("x", "a", "c", {"xlabel": " "}, "x axis has no label"),
    ],
)
def test_a_figure_that_not_everybody_can_read_is_refused(out, name, alt, caption, labels, words):
    with pytest.raises(ValueError, match=words):
        figures.save(chart(**labels), name, alt, caption)
    assert not list(out.glob("figures/*"))


def test_shared_axes_need_one_label(out, capsys):
    fig, (above, below) = plt.subplots(2, sharex=True)
    for axes in (above, below):
        axes.plot([1, 2])
        axes.set_ylabel("time [ns]")
    below.set_xlabel("size [bytes]")
    figures.save(fig, "shared", "two lines", "caption")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (-3, "−3"), (1234567, "1,234,567"), (0.5, "0.500"), (9.996, "10.0"), (99.96, "100"), (153.1, "153"),
        (1234.6, "1,235"), (0.0123, "0.0123"), (1e-5, "1.00e−05"), (1e20, "1.00e+20"), (None, "–"), (np.nan, "–"),
        (True, "yes"), (np.bool_(False), "no"), (np.int32(5), "5"), (np.float32(2.5), "2.50"), ("x", "x"),
        (0.0, "0.00"), (float("-inf"), "−∞"), (-0.25, "−0.250"),
    ],
)  # fmt: skip
def test_numbers_for_readers(value, text):
    assert tables.number(value) == text


def test_tables_are_tables_for_everybody():
    columns = {"type": ["A<d>d", "Del"], "count": [1000, 2], "p50 [ns]": [1.5, np.nan], "why": ["x" * 50, ""]}
    frame = pd.DataFrame(columns)
    text = tables.to_html(frame, 'By "type"', formats={"p50 [ns]": ".1f"}, note="a & b")
    assert '<caption><span>By "type"</span></caption>' in text.replace("&quot;", '"')
    assert '<th scope="row">A&lt;d&gt;d</th><td class="number">1,000</td><td class="number">1.5</td>' in text
    assert '<td class="number">2</td><td class="number">–</td><td class="long"></td>' in text
    assert text.count('scope="col"') == 4
    assert "a &amp; b" in text
    assert ">none</td>" in tables.to_html(frame.head(0), "Empty")
    with pytest.raises(ValueError, match="caption"):
        tables.to_html(frame, "")
    with pytest.raises(ValueError, match="not there: x"):
        tables.to_html(frame, "c", formats={"x": ".1f"})
