"""Each notebook runs alone, without the command line: papermill, a file of parameters, any working directory."""

import json
import os
import subprocess
import sys

import nbformat
import pytest
import yaml

from photonlab import paths
from photonlab.lab.judge import results
from photonlab.lab.publish import parameters, profiles

CHOSEN = ("01-parser", "00-machine")  # neither needs the other, nor what an earlier one has written


@pytest.mark.parametrize("name", CHOSEN)
def test_papermill_runs_a_notebook_from_a_file_of_parameters(tmp_path, name):
    source = paths.NOTEBOOKS / f"{name}.ipynb"
    values = profiles.resolve("smoke", [source])[name]
    given, done, elsewhere = tmp_path / "small.yaml", tmp_path / "done.ipynb", tmp_path / "elsewhere"
    elsewhere.mkdir()
    given.write_text(yaml.safe_dump(values))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PHOTONLAB_")}
    environment |= {"PHOTONLAB_OUT": str(tmp_path / "out"), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    if "PHOTONLAB_CACHE" in os.environ:
        environment["PHOTONLAB_CACHE"] = os.environ["PHOTONLAB_CACHE"]
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", "-f", str(given), str(source), str(done)]
    ran = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stderr[-2000:]
    book = nbformat.read(done, 4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    assert not [output for cell in code for output in cell.outputs if output.output_type == "error"]
    frame = results.collect(tmp_path / "out")
    assert set(frame["notebook"]) == {name}
    recording = {str(cell.execution_count) for cell in code if ".record(" in cell.source}
    assert set(frame["cell"]) == recording, "each row names the cell that recorded it"
    rounds = json.loads((tmp_path / "out" / "rows" / f"{name}.rounds.json").read_text())
    assert rounds["comparisons"] > 0 and rounds["rounds"] > 0
    assert not any(elsewhere.iterdir()), "nothing is written where it happens to run"


@pytest.mark.parametrize("path", sorted(paths.NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_notebook_runs_from_what_it_declares(path):
    """No cell before the parameters, and none needs a variable that the driver alone would give."""
    code = [cell for cell in parameters.read_notebook(path).cells if cell.cell_type == "code"]
    assert "parameters" in code[0].metadata.get("tags", [])
    assert None not in parameters.declared(path).values()
    text = "\n".join(cell.source for cell in code)
    assert "environ" not in text and "../" not in text
