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
    rate = f", {_short(done / seconds)}/s" if seconds > 0.5 and done else ""
    if not total:
        return f"{done:,} … {seconds:.0f} s{rate}"
    share = min(done / total, 1)
    left = f", {seconds * (1 - share) / share:.0f} s left" if share > 0.02 else ""
    return f"[{'#' * round(WIDTH * share):{WIDTH}}] {100 * share:3.0f} %{rate}{left}"


def _short(number):
    """Write a number with three digits at most, such as 312 M."""
    power = 0
    while number >= 999.5 and power < 3:
        number, power = number / 1000, power + 1
    return f"{number:.3g}{('', ' k', ' M', ' G')[power]}"


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
    from photonlab.kernels.itch import BY_TYPE

    facts = result.summary()
    counts = {f"{kind}  {BY_TYPE[kind].name if kind in BY_TYPE else ''}": n for kind, n in facts["counts"].items()}
    odd = {name.replace("_", " "): count for name, count in facts["anomalies"].items() if count}
    lines = [
        f"{facts['messages']:,} messages, {facts['bytes']:,} bytes in {facts['seconds']:.3f} s: "
        f"{facts['messages_per_second']:,.0f} messages a second",
        f"{facts['live_orders']:,} live orders at the end, checksum {facts['checksum']}",
        "",
        *columns("Messages by type", counts),
        "",
        *(columns("Anomalies", odd) if odd else ["No anomalies."]),
    ]
    if "capture" in facts:
        lines += ["", *capture_lines(facts["capture"])]
    best = result.bbo()
    if top and len(best):
        lines += ["", f"Best prices ({min(top, len(best)):,} of {len(best):,} symbols, those that traded most)"]
        lines += best_lines(best.sort_values("volume", ascending=False, kind="stable").head(top))
    return "\n".join(lines)


def capture_lines(capture, most=10):
    """Describe what a capture was like.

    Parameters
    ----------
    capture : dict
        As `Replay.capture` has it.
    most : int
        Show so many gaps at most.

    Returns
    -------
    list of str
    """
    lines = [f"Capture of session {capture['session'].strip()!r}"]
    for line, counts in capture["lines"].items():
        lines.append(f"  {line}  " + ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items()))
    odd = {name.replace("_", " "): count for name, count in capture["anomalies"].items() if count}
    lines += columns("Out of order in the capture", odd) if odd else ["Nothing is out of order in the capture."]
    for first, count in capture["gaps"][:most]:
        lines.append(f"  gap: {count:,} messages from number {first:,}")
    if len(capture["gaps"]) > most:
        lines.append(f"  and {len(capture['gaps']) - most:,} more gaps")
    return lines


def best_lines(frame):
    """Write best prices as a table; a side without orders shows a dash.

    Parameters
    ----------
    frame : pandas.DataFrame
        Indexed by symbol, with bid, bid_shares, ask, ask_shares and volume as `Replay.bbo` gives them.

    Returns
    -------
    list of str
    """
    from photonlab.kernels.itch import price_text

    lines = [f"  {'symbol':<8} {'bid shares':>12} {'bid':>12} {'ask':>12} {'ask shares':>12} {'volume':>14}"]
    prices = {side: [_or_dash(raw, price_text) for raw in frame[side]] for side in ("bid", "ask")}
    shares = {side: [_or_dash(raw, "{:,}".format) for raw in frame[f"{side}_shares"]] for side in ("bid", "ask")}
    rows = zip(frame.index, shares["bid"], prices["bid"], prices["ask"], shares["ask"], frame.volume, strict=True)
    for symbol, bid_shares, bid, ask, ask_shares, volume in rows:
        lines.append(f"  {symbol:<8} {bid_shares:>12} {bid:>12} {ask:>12} {ask_shares:>12} {volume:>14,}")
    return lines


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


def _or_dash(value, write):
    import pandas as pd

    return "–" if pd.isna(value) else write(int(value))
