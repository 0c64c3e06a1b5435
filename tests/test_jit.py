"""The decorator and its cache; trap 15: whatever happened to a file on disk, never a wrong kernel and never a crash."""

import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

from photonlab import paths
from photonlab.machine import jit
from photonlab.machine.jit import kernel

STEP = np.uint64(2)


def double(number):
    return number * STEP


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder of this test's own."""
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(jit, "_warned", set())
    monkeypatch.setattr(jit, "KERNELS", {})
    return tmp_path / "cache"


def use(function=double, argument=21, **options):
    """Make a new kernel of a function and call it; give the result and whether the code came from the disk."""
    made = kernel(function, **options)
    result = made(np.uint64(argument))
    return result, bool(made.stats.cache_hits)


def files(cache, ending):
    return sorted(cache.rglob(f"*.{ending}"))


def test_the_second_use_comes_from_the_disk(cache):
    assert use() == (42, False)
    assert use() == (42, True)
    assert len(files(cache, "nbi")) == len(files(cache, "nbc")) == 1


def test_options_reach_numba_and_the_register(cache):
    made = kernel(cache=False, inline="never")(double)
    assert made.targetoptions["nogil"] and made.targetoptions["error_model"] == "numpy"
    assert made(np.uint64(4)) == 8
    assert not cache.exists()
    assert list(jit.KERNELS.items()) == [("tests.test_jit.double", made)]


def test_a_division_by_zero_does_not_raise():
    @kernel(cache=False)
    def divide(a, b):
        return a // b

    divide(np.uint64(1), np.uint64(0))


def test_a_kernel_that_was_never_in_a_file_works_without_the_cache(cache):
    """As in a notebook's cell."""
    names = {"np": np}
    exec(compile("def triple(n):\n    return n * np.uint64(3)", "<a cell>", "exec"), names)
    assert use(names["triple"]) == (63, False)
    assert not cache.exists()


LARGE = np.arange(1 << 21, dtype=np.uint64)


def test_what_numba_cannot_cache_is_said_and_works(cache):
    """An array too large to be frozen is referred to by its address, which no file may keep."""
    with pytest.warns(Warning, match="dynamic globals") as caught:
        assert use(lambda n: LARGE[n], 7) == (7, False)
    assert len(caught) == 1 and not files(cache, "nbc")


# -- damage --------------------------------------------------------------------------------------------------------


def cut(share):
    def damage(path):
        raw = path.read_bytes()
        path.write_bytes(raw[: int(len(raw) * share)])

    return damage


def flip(share):
    def damage(path):
        raw = bytearray(path.read_bytes())
        raw[int((len(raw) - 1) * share)] ^= 0x10
        path.write_bytes(raw)

    return damage


def fill(path):
    path.write_bytes(os.urandom(path.stat().st_size))


DAMAGE = {
    **{f"cut to {share}": cut(share) for share in (0, 0.01, 0.5, 0.99)},
    **{f"bit flipped at {share}": flip(share) for share in (0, 0.02, 0.3, 0.6, 0.9, 1)},
    "filled with noise": fill,
    "doubled": lambda path: path.write_bytes(path.read_bytes() * 2),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_trap_15_a_damaged_file_is_a_miss_with_one_warning(cache, ending, damage):
    use()
    (path,) = files(cache, ending)
    DAMAGE[damage](path)
    with pytest.warns(RuntimeWarning, match="a cached kernel could not be read.*it is compiled anew") as caught:
        assert use() == (42, False)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert use() == (42, True), "and it has been mended"


def test_trap_15_many_damaged_files_are_one_warning(cache):
    use()
    use(lambda number: number + STEP)
    for path in files(cache, "nbc"):
        path.write_bytes(b"")
    with pytest.warns(RuntimeWarning) as caught:
        use()
        use(lambda number: number + STEP)
    assert len(caught) == 1


def test_trap_15_a_data_file_that_is_gone_is_a_miss(cache):
    use()
    for path in files(cache, "nbc"):
        path.unlink()
    assert use() == (42, False)
    assert use() == (42, True)


def blocked_by_a_file(cache):
    cache.write_text("not a folder")


def blocked_folder_of_kernels(cache):
    cache.mkdir()
    (cache / "kernels").write_text("not a folder")


def blocked_index(cache):
    use()
    (path,) = files(cache, "nbi")
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("block", [blocked_by_a_file, blocked_folder_of_kernels, blocked_index])
def test_trap_15_a_cache_that_cannot_be_written_is_one_warning(cache, block):
    block(cache)
    with pytest.warns(RuntimeWarning, match="a cached kernel could not be") as caught:
        assert use() == (42, False)
        assert use() == (42, False)
    assert len(caught) == 1


def test_trap_15_a_folder_without_permission_to_write(monkeypatch):
    monkeypatch.setattr(jit, "_warned", set())
    monkeypatch.setattr(jit, "KERNELS", {})
    with tempfile.TemporaryDirectory() as folder:  # not below pytest's, which nobody else may enter
        monkeypatch.setattr(paths, "CACHE", Path(folder) / "cache")
        (Path(folder) / "cache").mkdir(mode=0o555)
        Path(folder).chmod(0o755)
        me = os.geteuid()
        try:
            if me == 0:
                os.seteuid(65534)
            with pytest.warns(
                RuntimeWarning, match="a cached kernel could not be written.*Permission denied"
            ) as caught:
                assert use() == (42, False)
                assert use() == (42, False)
        finally:
            os.seteuid(me)
        assert len(caught) == 1
        assert not list(Path(folder, "cache").iterdir())


def test_trap_15_a_data_file_of_another_signature_is_a_miss(cache):
    """Two processes that fill an empty cache at once number their files alike, and the later index may win."""
    made = kernel(double)
    made(np.uint64(1))
    made(np.uint32(1))
    index, data = files(cache, "nbi"), files(cache, "nbc")
    assert (len(index), len(data)) == (1, 2)
    shutil.copy(data[0], cache / "kept")
    shutil.copy(data[1], data[0])
    shutil.copy(cache / "kept", data[1])
    assert use() == (42, False)
    again = kernel(double)
    assert again(np.uint64(2**33)) == 2**34 and again(np.uint32(5)) == 10


def test_trap_15_folders_of_other_stamps_stay_for_a_fortnight(cache):
    use()
    (folder,) = (cache / "kernels").iterdir()
    old, recent, other = (
        folder.parent / name for name in ("tests.test_jit-" + "0" * 16, "tests.test_jit-" + "1" * 16, "tests.test-x")
    )
    for path, age in ((old, 15), (recent, 13), (other, 99)):
        path.mkdir()
        (path / "something.nbc").write_text("")
        when = folder.stat().st_mtime - age * 86400
        os.utime(path, (when, when))
    use(lambda number: number)
    assert not old.exists() and recent.exists() and other.exists()


# -- what decides the code -----------------------------------------------------------------------------------------


def test_trap_15_a_frozen_global_that_has_changed_is_a_miss(cache, monkeypatch):
    assert use() == (42, False)
    monkeypatch.setitem(globals(), "STEP", np.uint64(3))
    assert use() == (63, False)
    monkeypatch.setitem(globals(), "STEP", np.array([1, 5], np.uint64))
    first = kernel(lambda n: n * STEP[1])
    assert first(np.uint64(2)) == 10
    monkeypatch.setitem(globals(), "STEP", np.array([1, 7], np.uint64))
    assert kernel(lambda n: n * STEP[1])(np.uint64(2)) == 14
    monkeypatch.setitem(globals(), "STEP", np.uint64(2))
    assert use() == (42, True)


def test_the_stamp_depends_on_bounds_checks_and_optimisation(monkeypatch):
    stamps = {jit.source_stamp(Path(__file__))}
    monkeypatch.setattr(jit.config, "BOUNDSCHECK", 1 - (jit.config.BOUNDSCHECK or 0))
    stamps.add(jit.source_stamp(Path(__file__)))
    monkeypatch.setattr(jit.config, "OPT", 1)
    stamps.add(jit.source_stamp(Path(__file__)))
    assert len(stamps) == 3


CALLEE = """
import numpy as np
from photonlab.kernels.numbers import FACTOR
from photonlab.machine.jit import kernel

@kernel
def scaled(n):
    return n * FACTOR
"""
MIDDLE = "from photonlab.kernels import callee\n\nscaled = callee.scaled\n"
CALLER = """
import numpy as np
from photonlab.kernels import middle
from photonlab.machine.jit import kernel

@kernel
def run(n):
    return middle.scaled(n) + np.uint64(1)

print(run(np.uint64(10)), bool(run.stats.cache_hits))
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the decorator with a caller, a callee behind a module that hands it on, and a constant behind it."""
    source = Path(jit.__file__).parent.parent
    root = tmp_path / "photonlab"
    (root / "machine").mkdir(parents=True)
    (root / "kernels").mkdir()
    for name in (
        "__init__.py",
        "errors.py",
        "paths.py",
        "machine/__init__.py",
        "machine/jit.py",
        "machine/sanitizer.py",
        "kernels/__init__.py",
    ):
        shutil.copy(source / name, root / name)
    (root / "kernels" / "numbers.py").write_text("import numpy as np\n\nFACTOR = np.uint64(5)\n")
    (root / "kernels" / "callee.py").write_text(CALLEE)
    (root / "kernels" / "middle.py").write_text(MIDDLE)
    (root / "kernels" / "caller.py").write_text(CALLER)
    return tmp_path


def run_package(package):
    done = subprocess.run(
        [sys.executable, "-B", "-m", "photonlab.kernels.caller"],
        cwd=package,
        env={**os.environ, "PYTHONPATH": str(package), "PHOTONLAB_CACHE": str(package / "cache")},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def test_trap_15_a_change_in_any_module_below_is_a_miss(package):
    """Numba's own cache would bring back the old kernel: it looks at the caller's file only."""
    kernels = package / "photonlab" / "kernels"
    assert run_package(package) == (["51", "False"], "")
    assert run_package(package) == (["51", "True"], "")
    times = (kernels / "callee.py").stat()
    (kernels / "callee.py").write_text(CALLEE.replace("n * FACTOR", "n - FACTOR"))  # of the same size
    os.utime(kernels / "callee.py", ns=(times.st_atime_ns, times.st_mtime_ns))  # and time
    assert run_package(package) == (["6", "False"], "")
    (kernels / "numbers.py").write_text("import numpy as np\n\nFACTOR = np.uint64(3)\n")
    assert run_package(package) == (["8", "False"], "")
    (kernels / "middle.py").write_text(MIDDLE.replace("callee.scaled", "callee.scaled  # the same"))
    assert run_package(package) == (["8", "False"], "")
    (kernels / "callee.py").write_text(CALLEE)
    (kernels / "numbers.py").write_text("import numpy as np\n\nFACTOR = np.uint64(5)\n")
    (kernels / "middle.py").write_text(MIDDLE)
    assert run_package(package) == (["51", "True"], ""), "back to a source that is known"
