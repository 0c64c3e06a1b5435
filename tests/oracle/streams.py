"""Message streams for tests: hypothesis strategies that shrink, and long pseudo-random days by seed.

Both give what the oracle and the kernels must agree on: few instruments, few references in awkward places, close and
extreme prices, repeated, unknown and over-filled references, wrong lengths, unknown types and cut tails.
"""

import random
import struct

from hypothesis import strategies as st

from tests.oracle import itch

LOCATES = (0, 1, 2, 7, 300, 65535)
REFERENCES = (
    *range(6),
    *(64 << k for k in range(0, 20, 5)),  # multiples of powers of two, which weak hashes gather in one slot
    *(k << 32 for k in range(1, 4)),
    *(edge + step for edge in (2**32, 2**53, 2**63) for step in (-1, 0, 1)),
    2**64 - 2,
    2**64 - 1,
)
SHARES = (0, 1, 2, 3, 5, 100, 2**31 - 1, 2**31, 2**32 - 1)
PRICES = (*range(100, 108), 0, 1, 63, 64, 65, 4095, 4096, 2**31 - 1, 2**31, 2_000_000_000, 2**32 - 2, 2**32 - 1)
SYMBOLS = (b"AAPL    ", b"ZVZZT   ", b"A       ", b"BRK.A   ")
UNKNOWN_TYPES = b"Zza\x00\xff1"

locates = st.sampled_from([*LOCATES[:2] * 6, *LOCATES])
references = st.sampled_from([*REFERENCES[:5] * 20, *REFERENCES])
shares = st.sampled_from(SHARES[1:6]) | st.sampled_from(SHARES) | st.integers(0, 2**32 - 1)
prices = st.sampled_from(PRICES[:8]) | st.sampled_from(PRICES) | st.integers(0, 2**32 - 1)
symbols = st.sampled_from(SYMBOLS)
sides = st.sampled_from([b"B", b"S"] * 10 + [b"b", b" ", b"\xff"])
u64 = st.sampled_from([0, 1, 2**53 + 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1)
characters = st.sampled_from([b" ", b"A", b"N", b"Y", b"\x00", b"\xff"])


def _message(kind, **fields):
    """Strategy of one type's messages: the named fields as given, the header drawn, the rest zero or spaces."""
    header = {"stock_locate": locates, "tracking_number": st.integers(0, 65535), "timestamp": st.integers(0, 2**48 - 1)}
    return st.builds(lambda values: itch.encode(kind, **values), st.fixed_dictionaries({**header, **fields}))


_ADD = {
    "order_reference_number": references,
    "buy_sell_indicator": sides,
    "shares": shares,
    "price": prices,
    "stock": symbols,
}
adds = _message("A", **_ADD) | _message("F", **_ADD, attribution=st.just(b"NITE"))
modifications = st.one_of(
    _message("E", order_reference_number=references, executed_shares=shares, match_number=u64),
    _message(
        "C",
        order_reference_number=references,
        executed_shares=shares,
        match_number=u64,
        printable=st.sampled_from([b"Y", b"N", b" "]),
        execution_price=prices,
    ),
    _message("X", order_reference_number=references, canceled_shares=shares),
    _message("D", order_reference_number=references),
    _message(
        "U",
        original_order_reference_number=references,
        new_order_reference_number=references,
        shares=shares,
        price=prices,
    ),
)
trades = st.one_of(
    _message("P", order_reference_number=references, buy_sell_indicator=sides, shares=shares, price=prices),
    _message("Q", cross_shares=u64.map(lambda n: n >> 8), cross_price=prices, cross_type=st.sampled_from(b"OCHI").map(
        lambda code: bytes([code]))),
    _message("B", match_number=u64),
)  # fmt: skip
states = st.one_of(
    _message("S", event_code=st.sampled_from([b"O", b"S", b"Q", b"Q", b"M", b"E", b"C"])),
    _message("R", stock=symbols, round_lot_size=shares),
    _message("H", stock=symbols, trading_state=st.sampled_from([b"T", b"T", b"H", b"P", b"Q"])),
    _message("h", stock=symbols, operational_halt_action=st.sampled_from([b"H", b"T"])),
)
others = st.sampled_from("YLVWKJINO").flatmap(_message)
bad_lengths = st.builds(
    lambda message, change: message[:change] if change < 0 else message + b"\x00" * change,
    st.one_of(adds, modifications, trades, states),
    st.sampled_from([-10, -1, 1, 4]),
)
unknown_types = st.builds(
    lambda kind, body: bytes([kind]) + body, st.sampled_from(UNKNOWN_TYPES), st.binary(max_size=60)
)
_kinds = [adds] * 8 + [modifications] * 8 + [trades, states, states, others, others, bad_lengths, unknown_types]
messages = st.sampled_from(_kinds).flatmap(lambda strategy: strategy)
"""One message, mostly such as changes a book."""


_OPENED = [itch.encode("S", event_code=b"Q")] + [itch.encode("Q", stock_locate=n, cross_type=b"O") for n in LOCATES]


def streams(sizes=(0, 3, 10, 30, 60)):
    """Strategy of whole streams, half of them behind an open market: lists of messages, to frame with `itch.frame`."""
    lists = st.sampled_from(sizes).flatmap(lambda size: st.lists(messages, min_size=size // 2, max_size=size))
    return st.builds(lambda opened, rest: _OPENED * opened + rest, st.booleans(), lists)


tails = st.one_of(
    st.just(b""),
    st.just(b"\x00\x00"),
    st.builds(lambda rest: b"\x00\x00" + rest, st.binary(max_size=40)),
    st.builds(lambda message, cut: itch.frame([message])[: cut % (len(message) + 2)], messages, st.integers(0, 60)),
)
"""What may stand behind the last whole message: nothing, the end of the session, bytes behind it, a cut message."""

framed_streams = st.builds(lambda stream, tail: itch.frame(stream) + tail, streams(), tails)
"""Strategy of bytes: a framed stream and its tail."""


def any_message(kind):
    """Strategy of messages of one type with every field at random."""
    fields = {}
    for name, form in zip(itch.NAMES[kind], itch.FORMAT[kind][1:].split(), strict=True):
        width = struct.calcsize(">" + form)
        if name == "message_type":
            continue
        if name == "timestamp":
            fields[name] = st.integers(0, 2**48 - 1)
        elif form[-1] in "cs":
            fields[name] = st.binary(min_size=width, max_size=width)
        else:
            top = 2 ** (8 * width) - 1
            fields[name] = st.sampled_from([0, 1, top // 2, top // 2 + 1, top]) | st.integers(0, top)
    return st.builds(lambda values: itch.encode(kind, **values), st.fixed_dictionaries(fields))


any_type = st.sampled_from(sorted(itch.LENGTH))


def long_stream(seed, count, *, instruments=20, spread=1, faults=0.01):
    """Give a framed stream that mostly makes sense, with a share of `faults`; the same bytes for the same seed.

    References go up by steps of 1 to 4 times `spread` from a start beyond 2^32; prices gather round one level per
    instrument; about as many orders leave as come, so that queues stay short and slots are used again.
    """
    draw = random.Random(seed)
    live, next_reference, out = [], 2**32 - 50, []
    for event in (b"O", b"S", b"Q"):
        out.append(itch.encode("S", event_code=event))
    for locate in range(instruments):
        out.append(itch.encode("R", stock_locate=locate, stock=b"S%d" % locate))
        if draw.random() < 0.8:
            out.append(itch.encode("Q", stock_locate=locate, cross_type=b"O", cross_shares=draw.randrange(1000)))
    while len(out) < count:
        kind = draw.choices("AFECXDUPhH", (40, 5, 8, 2, 5, 38, 9, 1, 0.2, 0.2))[0]
        locate = min(int(draw.expovariate(0.3)), instruments - 1)
        middle = 10_000 + 100 * locate
        price = draw.choice(PRICES) if draw.random() < faults else middle + draw.randrange(-20, 21)
        fresh = next_reference + spread * draw.randrange(1, 5)
        reference, at = fresh, len(live)
        if kind in "ECXDU":
            if live and draw.random() >= faults:
                at = draw.randrange(len(live)) if draw.random() < 0.5 else max(0, len(live) - 1 - draw.randrange(50))
                reference = live[at]
            else:
                reference = draw.choice(REFERENCES)
        elif kind in "AF" and live and draw.random() < faults:
            fresh = draw.choice(live)
        quantity = draw.choice((1, 50, 100, 100, 100, 200, 300)) if draw.random() >= faults else draw.choice(SHARES)
        values = {"stock_locate": locate, "timestamp": len(out)}
        if kind in "AF":
            side = b"B" if price < middle or (price == middle and draw.random() < 0.5) else b"S"
            values |= {"order_reference_number": fresh, "buy_sell_indicator": side, "shares": quantity, "price": price}
            values |= {"stock": b"S%d" % locate}
            live.append(fresh)
            next_reference = max(next_reference, fresh) if fresh < 2**63 else next_reference
        elif kind in "EC":
            values |= {"order_reference_number": reference, "executed_shares": quantity}
            values |= {"printable": draw.choice((b"Y", b"N"))} if kind == "C" else {}
        elif kind == "X":
            values |= {"order_reference_number": reference, "canceled_shares": quantity}
        elif kind == "D":
            values |= {"order_reference_number": reference}
            del live[at : at + 1]
        elif kind == "U":
            values |= {"original_order_reference_number": reference, "new_order_reference_number": fresh}
            values |= {"shares": quantity, "price": price}
            if at < len(live):
                live[at] = fresh
            next_reference = max(next_reference, fresh) if fresh < 2**63 else next_reference
        elif kind == "P":
            values |= {"shares": quantity, "price": price}
        elif kind == "h":
            values |= {"operational_halt_action": draw.choice((b"H", b"T"))}
        else:
            values |= {"trading_state": draw.choice((b"T", b"T", b"H"))}
        message = itch.encode(kind, **values)
        if draw.random() < faults / 4:
            message = message[:-1] if draw.random() < 0.5 else draw.choice((b"Z", b"\xff")) + message[1:]
        out.append(message)
    return itch.frame(out)
