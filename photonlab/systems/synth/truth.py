"""The truth about a synthetic day, from the generator's own market: what a replay of its bytes must find."""

import dataclasses
import json
from pathlib import Path

import numpy as np

from photonlab.kernels.itch import TYPES
from photonlab.machine.jit import kernel
from photonlab.systems.synth import state as st
from photonlab.systems.synth.instruments import WINDOW
from photonlab.systems.synth.market import price_of, reference_of
from photonlab.systems.synth.presets import VERSION
from photonlab.systems.synth.rng import inline, mix64

_BUY_LETTER, _SELL_LETTER = np.uint64(ord("B")), np.uint64(ord("S"))
_16, _32 = np.uint64(16), np.uint64(32)


@dataclasses.dataclass(frozen=True)
class Truth:
    """What is so about a day.

    Attributes
    ----------
    messages, bytes : int
    sha256 : str
        Of the bytes.
    counts : dict of str to int
        Messages by type, all 23.
    live_orders, peak_live_orders, live_shares : int
        Orders at the end of the day and at most, and the shares of those at the end.
    checksum : int
        Sum modulo 2^64 of `order_word` over the live orders, so in any order.
    volume : int
        Shares traded: E, printable C, P and Q; broken trades are not taken off.
    bests : dict of str to list
        By symbol: [bid price, bid shares, ask price, ask shares] at the end, raw; zeros for an empty side.
    volumes : dict of str to int
        By symbol.
    seed, preset, instruments, profile, channels, version
        What the day was made from.
    """

    messages: int
    bytes: int
    sha256: str
    counts: dict
    live_orders: int
    peak_live_orders: int
    live_shares: int
    checksum: int
    volume: int
    bests: dict
    volumes: dict
    seed: int
    preset: str
    instruments: int
    profile: str
    channels: int
    version: int = VERSION

    def write(self, path) -> None:
        """Write the truth as JSON."""
        Path(path).write_text(json.dumps(dataclasses.asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path) -> "Truth":
        """Read a truth from its JSON."""
        return cls(**json.loads(Path(path).read_text(encoding="utf-8")))


@inline
def order_word(reference, shares, price, letter, locate):
    """Return 64 bits of a live order, for the checksum: mix64 twice, of the reference, then with all else.

    Parameters
    ----------
    reference, shares, price, letter, locate : uint64
        `letter` is the side on the wire, B or S.

    Returns
    -------
    uint64
        ``mix64(mix64(reference ^ locate << 32 ^ letter << 16) ^ price << 32 ^ shares)``; the shares below 2^32.
    """
    return mix64(mix64(reference ^ (locate << _32) ^ (letter << _16)) ^ (price << _32) ^ shares)


@kernel
def survey(day, bests):
    """Walk all queues of a day.

    Parameters
    ----------
    day : Day
    bests : ndarray of int64, shape (instruments, 4)
        Receives bid price, bid shares, ask price, ask shares; zeros for an empty side.

    Returns
    -------
    orders, shares, checksum : int64, int64, uint64
    """
    orders, total, checksum = 0, 0, np.uint64(0)
    for i in range(day.instrument.shape[0]):
        row = day.instrument[i]
        for tick in range(WINDOW):
            node, here = np.int64(day.queue[i, tick, st.FIRST]), 0
            price = price_of(row, tick)
            while node >= 0:
                shares = np.int64(day.node[node, st.SHARES])
                letter = _BUY_LETTER if day.node[node, st.SIDE] == st.BUY else _SELL_LETTER
                checksum += order_word(
                    np.uint64(reference_of(day, node)), np.uint64(shares), np.uint64(price), letter, np.uint64(i + 1)
                )
                orders += 1
                here += shares
                node = np.int64(day.node[node, st.BEHIND])
            total += here
            if here > 0 and tick == row[st.BID]:
                bests[i, 0], bests[i, 1] = price, here
            elif here > 0 and tick == row[st.ASK]:
                bests[i, 2], bests[i, 3] = price, here
    return orders, total, checksum


def truth_of(day: st.Day, nbytes: int, sha256: str, **made_from) -> Truth:
    """Return the truth about a day that is over.

    Parameters
    ----------
    day : Day
    nbytes : int
    sha256 : str
    **made_from
        The arguments of the day.

    Returns
    -------
    Truth
    """
    bests = np.zeros((len(day.table), 4), np.int64)
    orders, shares, checksum = survey(day, bests)
    symbols = [int(word).to_bytes(8, "big").decode().rstrip() for word in day.table[:, st.SYMBOL]]
    return Truth(
        messages=int(day.word[st.SENT]),
        bytes=nbytes,
        sha256=sha256,
        counts={type_: int(day.word[st.SENT_OF + ord(type_)]) for type_ in TYPES},
        live_orders=int(orders),
        peak_live_orders=int(day.word[st.PEAK]),
        live_shares=int(shares),
        checksum=int(checksum),
        volume=int(day.table[:, st.VOLUME].sum()),
        bests=dict(zip(symbols, bests.tolist(), strict=True)),
        volumes=dict(zip(symbols, day.table[:, st.VOLUME].tolist(), strict=True)),
        **made_from,
    )
