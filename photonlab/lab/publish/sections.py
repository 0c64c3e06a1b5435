"""An executed notebook as one section of the page: HTML that needs nothing from outside, and the anchors in it."""

import ast
import copy
import html
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import latex2mathml.converter
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbconvert.preprocessors import TagRemovePreprocessor

TEMPLATES = Path(__file__).parent / "templates"
SHOWN = {"text/html", "text/markdown", "text/plain"}
BOXES = re.compile(
    r'(?:(?P<figure><figure [^>]*>)|(?P<table><div [^>]*class="table"[^>]*>))(?P<between>.*?)'
    "(?P<end></figcaption>|</caption>)",
    re.DOTALL,
)
"""A chart or a table, from its beginning to the end of its caption."""
CLAIM = re.compile(r"\b[A-Z]\d{1,2}\b")


class ReportError(Exception):
    """Something in a notebook that the page cannot show to everybody; the message names the cell."""


@dataclass
class Section:
    """A notebook on the page.

    Attributes
    ----------
    name : str
        The notebook's name, and the section's id.
    title : str
        HTML of its first heading.
    body : str
        HTML.
    toc : list of tuple of (str, str, int)
        Id, HTML and level (from 2) of each further heading.
    places : dict of str to str
        Claim → id of the heading below which it is tested.
    cells : dict of str to str
        Claim → id of the cell that records it.
    executions : dict of str to str
        Number of an execution → id of its cell.
    """

    name: str
    title: str = ""
    body: str = ""
    toc: list = field(default_factory=list)
    places: dict = field(default_factory=dict)
    cells: dict = field(default_factory=dict)
    executions: dict = field(default_factory=dict)


def mathml(latex, block):
    """Turn LaTeX into MathML, which browsers lay out by themselves.

    Parameters
    ----------
    latex : str
    block : bool
        On a line of its own.

    Returns
    -------
    str
        With the LaTeX as a tooltip for whoever wants to copy it.
    """
    try:
        text = latex2mathml.converter.convert(latex.strip(), display="block" if block else "inline")
    except Exception as error:  # the converter raises a dozen kinds, and index errors besides
        raise ReportError(f"not LaTeX that can be shown: {latex.strip()}") from error
    return text.replace("<math ", f'<math aria-label="{html.escape(latex.strip(), quote=True)}" ', 1)


class Renderer(IPythonRenderer):
    """Markdown as HTML: maths as MathML, headings one level down with ids that are unique on the page."""

    def __init__(self, section):
        super().__init__(escape=False, exclude_anchor_links=True)
        self.section = section

    def heading(self, text, level, **attrs):
        """Write a heading, and note it for the table of contents."""
        section, plain = self.section, html.unescape(re.sub(r"<[^>]+>", "", text))
        if level == 1 and not section.title:
            section.title, anchor = text, section.name
        else:
            slug = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-") or "part"
            anchor, count, taken = f"{section.name}--{slug}", 2, {entry[0] for entry in section.toc}
            while anchor in taken:
                anchor, count = f"{section.name}--{slug}-{count}", count + 1
            section.toc.append((anchor, text, level))
        for claim in CLAIM.findall(plain):
            section.places.setdefault(claim, anchor)
        return f'<h{min(level + 1, 6)} id="{anchor}">{text}</h{min(level + 1, 6)}>\n'

    def block_math(self, body):
        """Write display maths."""
        return mathml(body, True)

    def inline_math(self, body):
        """Write maths in a line."""
        return mathml(body, False)

    def latex_environment(self, name, body):
        """Write a LaTeX environment."""
        return mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", True)

    def block_mermaidjs(self, code):
        """Refuse a diagram that would need a script."""
        raise ReportError("a mermaid diagram needs a script; draw it with lab.figures")


def section(name, notebook, disturbed=None):
    """Render an executed notebook.

    Parameters
    ----------
    name : str
        Becomes the prefix of all ids.
    notebook : nbformat.NotebookNode
    disturbed : dict of str to str, optional
        Number of an execution → what disturbed it; stands below what that cell shows.

    Returns
    -------
    Section

    Raises
    ------
    ReportError
        An output that needs a script, a picture without a text alternative, maths that cannot be shown.
    """
    result = Section(name)
    notebook = _prepare(name, copy.deepcopy(notebook), result, disturbed or {})
    exporter = HTMLExporter(
        template_name="basic",
        raw_template=(TEMPLATES / "notebook.html.j2").read_text(encoding="utf-8"),
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    exporter.register_preprocessor(TagRemovePreprocessor(remove_cell_tags={"remove-cell"}, enabled=True), enabled=True)
    exporter.register_filter("markdown2html", lambda source: _markdown(name, source, result))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result.body, _ = exporter.from_notebook_node(notebook)
    result.body = result.body.replace("<pre>", '<pre tabindex="0">')  # it scrolls, and not everybody has a mouse
    result.body = _anchored(name, result.body)
    for claim, cell in result.cells.items():
        before = result.body.partition(f'id="{cell}"')[0]
        result.places.setdefault(claim, (re.findall(r'<h\d id="([^"]+)"', before) or [name])[-1])
    if not result.title:
        raise ReportError(f"{name}: the notebook has no title ('# …' in a Markdown cell)")
    return result


def _anchored(name, body):
    """Give every chart and every table an id, and its caption a link to it."""
    numbers = {"figure": 0, "table": 0}

    def mark(found):
        kind = "figure" if found["figure"] else "table"
        numbers[kind] += 1
        anchor = f"{name}--{kind}-{numbers[kind]}"
        link = f'<a class="anchor" href="#{anchor}" aria-label="Link to {kind} {numbers[kind]} of {name}">#</a>'
        begin = found["figure"] or found["table"]
        return f'{begin[:-1]} id="{anchor}">{found["between"]} {link}{found["end"]}'

    return BOXES.sub(mark, body)


def prose(name, source):
    """Render a text of the project's own.

    Parameters
    ----------
    name : str
        Becomes the prefix of all ids.
    source : str
        Markdown, with one title.

    Returns
    -------
    Section
    """
    result = Section(name)
    body = _markdown(name, source, result)
    label = html.escape(re.sub(r"<[^>]+>", "", result.title), quote=True)
    result.body = f'<div class="prose" role="region" tabindex="0" aria-label="Text: {label}">{body}</div>'
    return result


def _markdown(name, source, result):
    try:
        return MarkdownWithMath(renderer=Renderer(result)).render(source)
    except ReportError as error:
        raise ReportError(f"{name}: {error}") from error


def _prepare(name, notebook, result, disturbed):
    """Check the outputs, name the cells, mark disturbed ones, and leave out the defaults where given values follow."""
    notebook.metadata.pop("widgets", None)
    injected = any("injected-parameters" in cell.metadata.get("tags", []) for cell in notebook.cells)
    cells = []
    for number, cell in enumerate(notebook.cells, 1):
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "raw" or not cell.source.strip() or (injected and "parameters" in tags):
            continue
        if cell.cell_type == "code":
            for output in cell.outputs:
                _check_output(f"{name}, cell {number}", output)
            cell.metadata.photonlab_summary = (
                "Parameters" if {"parameters", "injected-parameters"} & {*tags} else "Code"
            )
            cell.metadata.photonlab_id = f"{name}--cell-{number}"
            cell.metadata.photonlab_disturbed = disturbed.get(str(cell.execution_count), "")
            result.executions[str(cell.execution_count)] = cell.metadata.photonlab_id
            for claim in recorded(cell.source):
                result.cells.setdefault(claim, cell.metadata.photonlab_id)
        cells.append(cell)
    notebook.cells = cells
    return notebook


def _check_output(where, output):
    kinds = set(output.get("data", {}))
    if output.output_type in ("display_data", "execute_result") and not kinds & SHOWN:
        raise ReportError(f"{where}: an output of {', '.join(sorted(kinds)) or 'nothing'} cannot be shown on the page")
    if any(kind.startswith("image/") or "javascript" in kind or "widget" in kind for kind in kinds):
        kinds = ", ".join(sorted(kinds - SHOWN))
        raise ReportError(f"{where}: an output of {kinds}: show charts by lab.figures.save, and nothing that moves")


def recorded(source):
    """Find the claims that a cell records, by its calls of `record("R1", …)`.

    Parameters
    ----------
    source : str
        Python.

    Returns
    -------
    list of str
        In the order of the calls.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = node.args[0] if node.args else None
        if called.startswith("record") and isinstance(first, ast.Constant) and isinstance(first.value, str):
            found.append(first.value)
    return found
