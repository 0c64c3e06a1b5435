"""environment.yml, pyproject.toml, requirements.lock and the running Python name the same packages and versions."""

import re
import sys
import tomllib
from importlib import metadata

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from photonlab import paths

PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]
REQUIRED = {
    canonicalize_name(r.name): r
    for r in map(Requirement, [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]])
}


def conda_pins():
    """Name → version of every `name=version` line; python and pip are conda's own."""
    pins = {}
    for line in yaml.safe_load((paths.ROOT / "environment.yml").read_text())["dependencies"]:
        if not isinstance(line, str):
            continue
        name, _, version = re.fullmatch(r"([\w.-]+)(>=|==|=)?([\w.]+)?", line).groups()
        pins[canonicalize_name(name)] = version
    return pins


def lock_pins():
    """Name → exact version of every line of the lock; a line of any other form fails."""
    lines = [line for line in (paths.ROOT / "requirements.lock").read_text().splitlines() if line and line[0] != "#"]
    pins = [re.fullmatch(r"([\w.-]+)==([\w.]+)", line) for line in lines]
    assert all(pins), [line for line, pin in zip(lines, pins, strict=True) if not pin]
    return {canonicalize_name(pin[1]): pin[2] for pin in pins}


def test_conda_names_what_pyproject_names():
    assert set(conda_pins()) - {"python", "pip"} == set(REQUIRED)


@pytest.mark.parametrize("name", sorted(REQUIRED))
def test_one_version_everywhere(name):
    locked, conda, installed = lock_pins()[name], conda_pins()[name], metadata.version(name)
    assert REQUIRED[name].specifier.contains(locked), f"the lock has {locked}, pyproject {REQUIRED[name]}"
    assert Version(installed) == Version(locked), f"{name}: {installed} is installed, {locked} locked: make setup"
    shown = f"{name}: environment.yml has {conda}, the lock {locked}"
    assert Version(locked).release[: len(Version(conda).release)] == Version(conda).release, shown


def test_lock_is_complete():
    """What the locked packages need on this platform is itself in the lock, so nothing floats."""
    lock, seen, queue = lock_pins(), set(), [*REQUIRED.values()]
    while queue:
        requirement = queue.pop()
        for extra in ["", *requirement.extras]:
            name = canonicalize_name(requirement.name)
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            assert name in lock, name
            needs = [Requirement(text) for text in metadata.requires(name) or []]
            queue += [need for need in needs if need.marker is None or need.marker.evaluate({"extra": extra})]


def test_python_floor_is_one_number():
    floor = PROJECT["requires-python"]
    assert floor == ">=3.11"
    assert conda_pins()["python"] == "3.11"
    assert "(3, 11)" in (paths.ROOT / "Makefile").read_text()
    assert sys.version_info >= (3, 11)
