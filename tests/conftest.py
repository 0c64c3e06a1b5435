"""What all tests share: seeded property tests without a time limit per example, and the folder of real data."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The first example of a property compiles its kernels, so a limit on one example would only find that out.
settings.register_profile(
    "seeded", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("seeded")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as a shell's background job: tests interrupt others

REAL_DATA = Path(os.environ.get("PHOTONLAB_REAL_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


@pytest.fixture(scope="session")
def real_data():
    """Function that gives the path of a real file, and skips the test by name if it is not there."""

    def find(name):
        path = REAL_DATA / name
        if not path.exists():
            pytest.skip(f"{name} is not in {REAL_DATA} (set PHOTONLAB_REAL_DATA)")
        return path

    return find


@pytest.fixture(autouse=True)
def no_chart_is_left():
    """Close the charts that a test drew: whoever draws one more than twenty would be blamed for all of them."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture
def told(monkeypatch):
    """Have every time told apart from none, for tests of what tables hold: on a busy machine a short one is not."""
    from photonlab.lab.measure.comparison import Timed

    monkeypatch.setattr(Timed, "at_floor", False)
