"""The house stays in order: floors, sizes, style, and notebooks that hold prose and short calls only."""

import ast
import itertools
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from photonlab import paths
from photonlab.lab.judge import claims
from photonlab.lab.publish import execution, parameters, sections

PACKAGE = paths.ROOT / "photonlab"
MODULES = sorted(PACKAGE.rglob("*.py"))
NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
FLOORS = ["machine", "kernels", "systems", "lab", ""]
"""From the ground up; the last one is the command line and what else lies in the package itself."""
GROUND = {"photonlab", "photonlab.errors", "photonlab.paths"}
"""Every floor may stand on these."""
LINES, TEST_LINES = 450, 650


def name_of(path):
    """Dotted name of a module."""
    parts = path.relative_to(paths.ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(path): path for path in MODULES}


def imports(path, everywhere=True):
    """Modules of the package that a module imports; without `everywhere` only those that are imported with it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree)) if everywhere else tree.body
    for node in nodes:
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            base = node.module
            wanted = [f"{base}.{a.name}" if f"{base}.{a.name}" in NAMES else base for a in node.names]
        else:
            continue
        yield from (name for name in wanted if name in NAMES)


def floor(name):
    """Number of the floor that a module lies on."""
    parts = name.split(".")
    return FLOORS.index(parts[1]) if len(parts) > 1 and parts[1] in FLOORS else len(FLOORS) - 1


@pytest.mark.parametrize("name", sorted(NAMES))
def test_floors_stand_on_lower_floors(name):
    if name in GROUND - {"photonlab"}:
        return
    upwards = [other for other in imports(NAMES[name]) if other not in GROUND and floor(other) > floor(name)]
    assert not upwards


def test_no_two_modules_import_each_other():
    graph = {name: set(imports(path)) - {name} for name, path in NAMES.items()}
    graph["photonlab"] = set(imports(NAMES["photonlab"], everywhere=False))  # its lazy attributes are no import
    done, path = set(), []

    def visit(name):
        assert name not in path, " → ".join([*path[path.index(name) :], name])
        if name in done:
            return
        path.append(name)
        for other in sorted(graph[name]):
            visit(other)
        done.add(path.pop())

    for name in sorted(graph):
        visit(name)


def test_files_can_be_read_in_one_sitting():
    limits = dict.fromkeys(MODULES, LINES) | dict.fromkeys((paths.ROOT / "tests").rglob("*.py"), TEST_LINES)
    lines = {path: len(path.read_text().splitlines()) for path in limits}
    assert {str(path): count for path, count in lines.items() if count > limits[path]} == {}


def test_every_module_says_what_it_is():
    texts = {name: path.read_text(encoding="utf-8") for name, path in NAMES.items()}
    assert [name for name, text in texts.items() if text and not ast.get_docstring(ast.parse(text))] == []


def test_ruff_has_nothing_to_say():
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "."], cwd=paths.ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_text_names_no_place_of_this_machine():
    """A path of whoever wrote it helps nobody, and no page is fetched while the notebooks run."""
    listed = subprocess.run(["git", "ls-files"], cwd=paths.ROOT, capture_output=True, text=True)
    files = [paths.ROOT / line for line in listed.stdout.splitlines()] if listed.returncode == 0 else MODULES
    places, found = [f"/{root}/" for root in ("home", "root", "Users", "work")], []
    for path in files:
        if path.suffix in {".py", ".md", ".toml", ".ipynb", ".yml", ".j2", ".css", ""} and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            found += [f"{path.name}: {word}" for word in places if word in text]
    assert not found


# -------------------------------------------------------------------------------------------------- notebooks


def code_cells(path):
    """Number and source of each code cell."""
    cells = nbformat.read(path, 4).cells
    return [(number, cell) for number, cell in enumerate(cells, 1) if cell.cell_type == "code"]


each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@each_notebook
def test_notebook_is_committed_without_outputs(path):
    extra = "metadata.papermill cell.metadata.papermill"
    command = [sys.executable, "-m", "nbstripout", "--verify", "--extra-keys", extra, str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{path.name}: nbstripout --extra-keys '{extra}' {path}"


@each_notebook
def test_notebook_holds_short_calls_only(path):
    for number, cell in code_cells(path):
        where = f"{path.stem}, cell {number}"
        assert len(cell.source.splitlines()) <= 15, f"{where} has more than 15 lines"
        for node in ast.walk(ast.parse(cell.source)):
            helpers = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.While, ast.Try)
            assert not isinstance(node, helpers), f"{where}: {type(node).__name__} belongs into a module"
            if isinstance(node, ast.For):
                inner = [one for one in ast.walk(node) if isinstance(one, ast.For | ast.AugAssign) and one is not node]
                assert len(node.body) <= 4 and not inner, f"{where}: a loop of work belongs into a module"
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
                assert not {"requests", "urllib", "tqdm", "ipywidgets"} & {name.split(".")[0] for name in names}, where


@each_notebook
def test_notebook_keeps_the_rules_of_the_driver(path):
    notebook = nbformat.read(path, 4)
    execution.check_cells(path.stem, notebook)
    parameters.declared(path)
    assert notebook.cells[0].cell_type == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    starts = [cell.source for _, cell in code_cells(path) if f'notebook.start("{path.stem}")' in cell.source]
    assert len(starts) == 1, f'{path.stem}: one cell calls notebook.start("{path.stem}")'


@each_notebook
def test_notebook_records_claims_of_the_ledger_that_are_its_own(path):
    ledger = claims.by_id()
    for number, cell in code_cells(path):
        for claim in filter(None, sections.recorded(cell.source)):
            assert claim in ledger, f"{path.stem}, cell {number}: no claim {claim}"
            assert ledger[claim].built, f"{path.stem}, cell {number}: the ledger says that {claim} is not built yet"


def test_claims_that_are_built_have_their_notebook():
    missing = {claim.notebook for claim in claims.load() if claim.built} - {path.stem for path in NOTEBOOKS}
    assert not missing


def test_figures_have_names_of_their_own():
    """All figures of a run lie in one folder."""
    names = []
    for _, cell in itertools.chain(*map(code_cells, NOTEBOOKS)):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("figure", "save"):
                names += [arg.value for arg in node.args[1:2] if isinstance(arg, ast.Constant)]
    twice = [name for name, group in itertools.groupby(sorted(names)) if len(list(group)) > 1]
    assert not twice


def test_fixture_notebooks_are_stripped_too():
    for path in (Path(__file__).parent / "notebooks").glob("*.ipynb"):
        for _, cell in code_cells(path):
            assert not cell.outputs
            assert cell.execution_count is None
