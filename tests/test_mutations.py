"""The oracles bite: each planted bug of tests/mutants.py is found, and the package as it is passes the same checks."""

import json
import subprocess
import sys

import pytest

from photonlab import paths
from tests.mutants import MUTANTS


@pytest.fixture(scope="module")
def found():
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutants"], cwd=paths.ROOT, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant(name, found):
    """A text that "no longer applies" has been rewritten: plant the same bug in what stands there now."""
    if name == "none":
        assert found[name] is None, "the package as it is fails the checks"
    else:
        assert found[name] and not found[name].startswith("no longer applies"), found[name] or "not found"
