"""Profiles: one word that sets the parameters of every notebook, and the single values that override it."""

import tomllib

from photonlab import paths
from photonlab.errors import UserError
from photonlab.lab.publish import parameters

NAMES = ("smoke", "quick", "full")
LIMITS = "limits"


def load(file=None):
    """Read the profiles.

    Parameters
    ----------
    file : pathlib.Path, optional
        Default: data/profiles.toml.

    Returns
    -------
    dict of str to dict
        Profile → notebook → parameter → value; the entry `limits` of a profile holds `cell_seconds`.
    """
    file = paths.DATA / "profiles.toml" if file is None else file
    try:
        profiles = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{file}: {error}") from error
    if set(profiles) != set(NAMES):
        raise UserError(f"{file}: the profiles are {', '.join(profiles)}, expected {', '.join(NAMES)}")
    return profiles


def overrides(texts):
    """Split `NOTEBOOK.name=value` texts.

    Parameters
    ----------
    texts : list of str

    Returns
    -------
    dict of str to dict of str to str
        Notebook → parameter → value as text; the last of equal names counts.
    """
    given = {}
    for text in texts:
        target, equals, value = text.partition("=")
        notebook, dot, name = target.rpartition(".")
        if not (equals and dot and notebook and name):
            raise UserError(f"'{text}' is not of the form NOTEBOOK.name=value")
        given.setdefault(notebook, {})[name] = value
    return given


def resolve(profile, notebooks, *, given=None, itch=None, profiles=None):
    """Collect the parameters of every notebook of a run, all checked before the first one starts.

    Parameters
    ----------
    profile : str
        smoke, quick or full.
    notebooks : list of pathlib.Path
    given : dict of str to dict of str to str, optional
        What `overrides` returns. A key may leave the end of the notebook's name out (`02` for `02-order-book`).
    itch : pathlib.Path, optional
        A file for every notebook that declares a parameter `itch`.
    profiles : dict, optional
        What `load` returns.

    Returns
    -------
    dict of str to dict
        Notebook's name → parameters that differ from or repeat its defaults, typed.

    Raises
    ------
    UserError
        An unknown profile, notebook or parameter, a value of the wrong type, or a file that no notebook reads.
    """
    profiles = load() if profiles is None else profiles
    if profile not in profiles:
        raise UserError(f"no profile '{profile}'; there are: {', '.join(profiles)}")
    values = {path.stem: dict(profiles[profile].get(path.stem, {})) for path in notebooks}
    for key, extra in (given or {}).items():
        values[match(key, list(values))].update(extra)
    if itch is not None:
        readers = [path.stem for path in notebooks if "itch" in parameters.declared(path)]
        if not readers:
            raise UserError(f"--itch: none of {', '.join(values)} has a parameter 'itch'")
        for stem in readers:
            values[stem]["itch"] = str(itch)
    return {path.stem: parameters.fit_all(path, values[path.stem]) for path in notebooks}


def match(key, stems):
    """Find the one notebook that a word means: its name, or the beginning of one name only.

    Parameters
    ----------
    key : str
    stems : list of str

    Returns
    -------
    str
    """
    key = key.removesuffix(".ipynb")
    found = [stem for stem in stems if stem == key] or [stem for stem in stems if stem.startswith(key) and key]
    if len(found) != 1:
        raise UserError(f"{'no' if not found else 'more than one'} notebook '{key}'; there are: {', '.join(stems)}")
    return found[0]


def cell_seconds(profile, profiles=None):
    """Give the longest time that one cell may take under a profile, in seconds.

    Parameters
    ----------
    profile : str
    profiles : dict, optional

    Returns
    -------
    int
    """
    return (load() if profiles is None else profiles)[profile][LIMITS]["cell_seconds"]
