"""What each step of preparing a machine changed on this one: computed from a run's rows, its facts and its settings.

The steps themselves stand in ``appendix/preparing.md``. A step that cannot be taken here says how it was found, and one
that the run measured with and without says what it made of the time.
"""

from photonlab.lab.judge.rows import figure
from photonlab.lab.measure import noise

SMALL, HUGE = "small pages", "huge pages"
NOTHING = "not measured in this run"

RATIOS = {
    "huge pages": (
        ("R7", "time", "4 KB pages / 2 MB pages", "blocks replaced at random"),
        ("R7", "walk, shuffled", "4 KB pages / 2 MB pages", "a walk in shuffled order"),
    ),
    "memory touched beforehand": (
        ("A7", "first pass", "untouched / pre-faulted", "a fill"),
        ("R13", "first pass", "untouched / pre-faulted", "a replay"),
    ),
    "cores of their own": (
        ("M4", "time", "not pinned / pinned", "a stream between two threads, not pinned"),
        ("T7", "p99 over p50", "shared cores / own cores", "the tail of a round, beside a busy thread"),
    ),
    "io_uring allowed": (("T4", "p50", "TCP blocking / io_uring SQPOLL", "a round from tick to trade"),),
}
"""Step → claim, statistic, variant "without / with", and what was timed."""


def effects(rows, about, facts) -> list[dict]:
    """Say of each step how this machine is set, and what the step changed here.

    Parameters
    ----------
    rows : pandas.DataFrame
        Of the run.
    about : dict of str to dict
        What the machine says of itself.
    facts : dict
        Of the run.

    Returns
    -------
    list of dict
        step, setting, effect, claims (those whose rows say so).
    """
    known = {(row["claim"], row["statistic"], row["variant"]): row for row in rows.to_dict("records")}
    told = [
        ("leave it alone", f"load {_setting(about, 'placement', 'load at start (1, 5, 15 min)')}", _quiet(facts), []),
        ("performance governor", _setting(about, "placement", "frequency governor"), _drift(facts), []),
        ("no turbo", _setting(about, "placement", "turbo"), "not switched: that needs a privilege, and a machine that "
         "shows it", []),
        ("siblings idle, or off", _setting(about, "processor", "SMT"), "not switched: that needs a privilege", []),
        ("cores of their own", f"isolcpus {_setting(about, 'placement', 'isolcpus')}",
         *_ratios("cores of their own", known)),
        ("interrupts elsewhere", "as the system has them", "not moved: that needs a privilege", []),
        ("huge pages", _setting(about, "memory", "transparent huge pages"), *_pages(known)),
        ("memory touched beforehand", "by the kernels", *_ratios("memory touched beforehand", known)),
        ("receive buffers", "as the system allows", *_losses(known)),
        ("counters allowed", f"perf_event_paranoid {_setting(about, 'system', 'perf_event_paranoid')}",
         *_counters(known)),
        ("io_uring allowed", f"io_uring_disabled {_setting(about, 'system', 'io_uring_disabled')}",
         *_ratios("io_uring allowed", known)),
    ]  # fmt: skip
    return [dict(zip(("step", "setting", "effect", "claims"), one, strict=True)) for one in told]


def _setting(about, part, name):
    value = (about.get(part) or {}).get(name, "unknown")
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _quiet(facts):
    """How many rounds were disturbed in all, and what the host took."""
    entries = [entry for entry in facts["notebooks"].values() if entry.get("rounds")]
    total = {
        what: sum(entry["rounds"].get(what, 0) for entry in entries) for what in ("rounds", "retaken", "disturbed")
    }
    share = noise.shares(total)["disturbed"]
    if share is None:
        return NOTHING
    stolen = [entry["noise"]["stolen"] for entry in entries if (entry.get("noise") or {}).get("stolen") is not None]
    text = f"{share:.1%} of {total['rounds'] + total['retaken']:,} rounds were disturbed"
    return f"{text}; the host took up to {max(stolen):.1%} of a notebook's time" if stolen else text


def _drift(facts):
    drifts = [
        entry["noise"]["drift"] for entry in facts["notebooks"].values() if (entry.get("noise") or {}).get("drift")
    ]
    return f"not switched; a cycle's length changed by {max(drifts, default=0):.1%} at most while a notebook ran"


def _ratio(row, what):
    """A ratio "without / with" in words."""
    if row["value"] != row["value"]:
        return f"{what}: {row['note'] or NOTHING}"
    text = f"{what}: without it {figure(row['value'], '×')}"
    if row["low"] != row["low"] or row["high"] != row["high"]:
        return text
    unsure = ", too close to call" if row["low"] <= 1 <= row["high"] else ""
    return f"{text} ({figure(row['low'])} to {figure(row['high'])}{unsure})"


def _ratios(step, known):
    found = [(claim, known.get((claim, statistic, variant)), what) for claim, statistic, variant, what in RATIOS[step]]
    texts = [_ratio(row, what) for _, row, what in found if row is not None]
    return "; ".join(texts) or NOTHING, sorted({claim for claim, row, _ in found if row is not None})


def _pages(known):
    """The claims' ratios, and the latency of a dependent load in the largest working set that was walked."""
    text, claims = _ratios("huge pages", known)
    sizes = [
        variant.partition(", ")[0] for _, statistic, variant in known if statistic == "latency" and SMALL in variant
    ]
    pair = [known.get(("", "latency", f"{sizes[-1]}, {pages}")) for pages in (SMALL, HUGE)] if sizes else []
    if pair and all(row is not None and row["value"] > 0 for row in pair):
        load = f"a dependent load in {sizes[-1]}: without it {figure(pair[0]['value'] / pair[1]['value'], '×')}"
        text = load if text == NOTHING else f"{text}; {load}"
    return text, claims


def _losses(known):
    lost = {variant: row["value"] for (claim, what, variant), row in known.items() if (claim, what) == ("P11", "loss")}
    told = [f"{name} lost {figure(value, '%')}" for name, value in lost.items() if value == value]
    return "; ".join(told) or NOTHING, ["P11"] if told else []


def _counters(known):
    row = known.get(("R6", "IPC", ""))
    if row is None:
        return NOTHING, []
    if row["value"] == row["value"]:
        return f"{figure(row['value'])} instructions a cycle could be counted", ["R6"]
    return row["note"], ["R6"]
