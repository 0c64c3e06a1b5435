"""What the command line shows on a terminal: a progress bar, and a replay in a few tables."""

import sys
import time
from contextlib import contextmanager

WIDTH = 30


@contextmanager
def progress(shown, stream=None):
    """Show how far long work is.

    Parameters
    ----------
    shown : bool
        False: nothing is shown.
    stream : file, optional
        Default: standard error.

    Yields
    ------
    callable or None
        Takes (done, total) in any unit; total may be 0 or None if it is not known. Draws at most ten times a second.
    """
    stream = sys.stderr if stream is None else stream
    if not shown:
        yield None
        return
    started, drawn = time.monotonic(), 0.0

    def draw(done, total=None):
        nonlocal drawn
        now = time.monotonic()
        if now - drawn < 0.1 and done != total:
            return
        drawn = now
        stream.write(f"\r\x1b[K{bar(done, total, now - started)}")
        stream.flush()

    try:
        yield draw
    finally:
        if drawn:
            stream.write("\r\x1b[K")
            stream.flush()


def bar(done, total, seconds):
    """Draw one state of the bar.

    Parameters
    ----------
    done, total : int
    seconds : float
        Since the start.

    Returns
    -------
    str
    """
    if not total:
        return f"{done:,} … {seconds:.0f} s"
    share = min(done / total, 1)
    left = f", {seconds * (1 - share) / share:.0f} s left" if share > 0.02 else ""
    return f"[{'#' * round(WIDTH * share):{WIDTH}}] {100 * share:3.0f} %{left}"


def replay_text(result, top):
    """Describe a replay.

    Parameters
    ----------
    result : photonlab.systems.replay.Replay
    top : int
        Show the best prices of so many symbols at most.

    Returns
    -------
    str
    """
    facts = result.summary()
    rate = facts["messages_per_second"]
    lines = [
        f"{facts['messages']:,} messages, {facts['bytes']:,} bytes in {facts['seconds']:.3f} s: "
        f"{rate / 1e6:,.2f} million messages a second, books kept",
        f"{facts['live_orders']:,} live orders at the end, checksum {facts['checksum']}",
        "",
        *columns("Messages by type", facts["counts"]),
    ]
    odd = {name: count for name, count in facts["anomalies"].items() if count}
    lines += ["", *columns("Anomalies", odd)] if odd else ["", "No anomalies."]
    best = result.bbo()
    if top and len(best):
        lines += ["", f"Best prices ({min(top, len(best)):,} of {len(best):,} symbols)", best.head(top).to_string()]
    return "\n".join(lines)


def columns(title, counts):
    """Write names and numbers below each other.

    Parameters
    ----------
    title : str
    counts : dict of str to int

    Returns
    -------
    list of str
    """
    wide = max((len(name) for name in counts), default=0)
    return [title, *(f"  {name:<{wide}}  {count:>15,}" for name, count in counts.items() if count)]
