"""Charts in one style, each with a text alternative, shown in the notebook as data and kept as a file of the run."""

import base64
import html
import io
import re

import matplotlib
from cycler import cycler
from IPython.display import display
from matplotlib import pyplot as plt

from photonlab.lab.judge import results
from photonlab.lab.publish.tables import number, table

__all__ = ["COLOURS", "GRID", "INK", "MUTED", "number", "save", "table", "use_style"]

INK, MUTED, GRID = "#1f2328", "#59636e", "#d1d9e0"
DARK = {INK: "#f0f6fc", MUTED: "#9198a1", GRID: "#3d444d"}
# Okabe and Ito's colours, which the colour-blind tell apart too; without their yellow, which is too faint on white.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
POINTS = 1000
"""A chart with more points than this is a PNG: an SVG of 20,000 points is ten times the size."""

STYLE = {
    # On a screen 400 px wide a chart of 5.8 inches shows 10.5 pt as about 9 px.
    "figure.figsize": (5.8, 3.6),
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "none",
    "savefig.dpi": 200,
    "savefig.facecolor": "none",
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.facecolor": "none",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.formatter.use_mathtext": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "patch.linewidth": 0,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "svg.fonttype": "path",
    "svg.hashsalt": "photonlab",  # else the ids in the file differ from run to run
}


def use_style():
    """Make every figure from here on use the style, whatever matplotlibrc the user has."""
    matplotlib.rcdefaults()
    matplotlib.rcParams.update(STYLE)


def save(fig, name, alt, caption):
    """Show a figure in the notebook, write it to the run's folder `figures`, and close it.

    Parameters
    ----------
    fig : matplotlib.figure.Figure
        Axes that show numbers must have labels; say the unit there.
    name : str
        File name without ending, unique over all notebooks: lower case, digits and hyphens.
    alt : str
        What a reader who cannot see the chart should know: its kind, its axes and what it shows.
    caption : str
        Stands below the chart.

    Raises
    ------
    ValueError
        A bad name, no text alternative, no caption, an axis without a label.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(f"figure name {name!r}: lower case, digits and hyphens only")
    if not alt.strip() or not caption.strip():
        raise ValueError(f"figure {name}: needs a text alternative and a caption")
    _check_labels(fig, name)
    kind = "svg" if _points(fig) <= POINTS else "png"
    content = _svg(fig) if kind == "svg" else _png(fig)
    plt.close(fig)
    folder = results.out() / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for other in folder.glob(f"{name}.*"):  # the same chart with another number of points
        other.unlink()
    (folder / f"{name}.{kind}").write_bytes(content)
    source = f"data:image/{'svg+xml' if kind == 'svg' else 'png'};base64,{base64.b64encode(content).decode()}"
    text = (
        f'<figure class="chart {kind}"><img src="{source}" alt="{html.escape(alt, quote=True)}" '
        f'style="max-width:100%"><figcaption>{html.escape(caption)}</figcaption></figure>'
    )
    display({"text/html": text, "text/plain": f"[{alt}]"}, raw=True)


def _check_labels(fig, name):
    for axes in fig.axes:
        if not axes.axison or axes.get_label() == "<colorbar>":
            continue
        for axis, side in ((axes.xaxis, "bottom"), (axes.yaxis, "left")):
            ticks = axis.get_tick_params()
            shown = any(ticks.get(f"label{s}", False) for s in (side, {"bottom": "top", "left": "right"}[side]))
            if axis.get_visible() and shown and len(axis.get_ticklocs()) and not axis.label.get_text().strip():
                raise ValueError(f"figure {name}: the {axis.axis_name} axis has no label")


def _points(fig):
    """How many marks the figure draws; an image counts as too many."""
    count = 0
    for axes in fig.axes:
        count += sum(len(line.get_xdata()) for line in axes.lines)
        count += len(axes.patches)
        count += sum(max(len(c.get_offsets()), sum(len(p.vertices) for p in c.get_paths())) for c in axes.collections)
        count += (POINTS + 1) * len(axes.images)
    return count


def _svg(fig):
    sink = io.BytesIO()
    fig.savefig(sink, format="svg", metadata={"Date": None, "Creator": None})
    rules = "".join(
        f'[style*="{what}: {light}"]{{{what}:{dark}!important}}'
        for light, dark in DARK.items()
        for what in ("fill", "stroke")
    )
    # The picture follows the reader's light or dark setting by itself, also where a page shows it as an image.
    style = f"<style>@media screen and (prefers-color-scheme:dark){{{rules}}}</style>"
    text = sink.getvalue().decode()
    text = re.sub(r"<\?xml.*?\?>\s*|<!DOCTYPE.*?>\s*|<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    return re.sub(r"(<svg\b[^>]*>)", lambda m: m[1] + style, text, count=1, flags=re.DOTALL).encode()


def _png(fig):
    sink = io.BytesIO()
    fig.savefig(sink, format="png", facecolor="white", metadata={"Software": None})
    return sink.getvalue()
