"""All that may happen between the two sides of a small ring, under the rules of release and acquire.

A sanitizer sees one execution, on one processor. Here every execution of a ring of a few slots and a few messages is
gone through, on a machine that is as weak as the order lets it be:

- A word has a history of stores. A load may take any store from the newest on that its thread knows of: an older one
  too than the newest there is.
- What a thread knows is its view: for each word the store that it has seen last. A store with release carries the view
  of its thread; a load with acquire takes over the view that the store carries; relaxed ones do neither.
- Words of slots are plain. It is a data race to read one of which there is a store beyond the view, or to write one
  that was read beyond it; its reader may get any store that its view allows, as from an atomic word.

Each word is written by one side only, so a store is always the last of its history. What this leaves out is a load
that is carried out after a later store: such an execution is found as a race, without a wrong word.

The sides are those of `photonlab.kernels.ring`, single and in batches: copies of the other's index, free space by
unsigned subtraction, indices that wrap around. Each of them is a state and its next steps.
"""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from photonlab.systems.experiments.ring_flaws import ACQUIRE, EARLY, GIVEN_BACK, RELEASE, ROOM, SOUND

HEAD, TAIL, SLOTS = 0, 1, 2
"""Words of the ring by number: the indices, and the first word of the slots."""

PRODUCER, CONSUMER = 0, 1
_NAMES = ("producer", "consumer")


class Ring(NamedTuple):
    """What is gone through.

    Attributes
    ----------
    slots, words, messages, batch : int
        Slots, words of a slot, messages to be passed, and how many each side moves at a time at most.
    bits : int
        Of an index.
    flaw : str
        `ring_flaws.SOUND`, or the name of a flaw.
    strong : bool
        Loads take the newest store: nothing but the interleaving of the steps is left.
    """

    slots: int = 2
    words: int = 1
    messages: int = 4
    batch: int = 2
    bits: int = 3
    flaw: str = SOUND
    strong: bool = False


class Side(NamedTuple):
    """Where a side stands.

    Attributes
    ----------
    at : str
        What it does next.
    done : int
        Messages that it has passed.
    seen : int
        The other's index as it was last seen.
    count, word : int
        Messages that it is passing, and words of them that it has passed.
    """

    at: str
    done: int
    seen: int
    count: int = 0
    word: int = 0


class State(NamedTuple):
    """Both sides, what each knows, and the histories of all words as (value, view that it carries)."""

    sides: tuple[Side, Side]
    views: tuple[tuple[int, ...], tuple[int, ...]]
    histories: tuple[tuple[tuple[int, tuple[int, ...]], ...], ...]


class Step(NamedTuple):
    """A step: what follows from it, in words, and whether it is a race or reads a wrong word."""

    state: State
    text: str
    race: bool = False
    wrong: bool = False


@dataclass(frozen=True)
class Outcome:
    """What there is among all executions.

    Attributes
    ----------
    ring : Ring
    states : int
        Different ones that were reached.
    race, wrong : tuple of str, or None
        The shortest execution with a data race, and with a word read that is not the message's; step by step.
    stuck : bool
        From some state the end cannot be reached.
    """

    ring: Ring
    states: int
    race: tuple[str, ...] | None
    wrong: tuple[str, ...] | None
    stuck: bool

    @property
    def sound(self) -> bool:
        """No execution has a race, a wrong word, or no way to its end."""
        return self.race is None and self.wrong is None and not self.stuck


def check(ring: Ring) -> Outcome:
    """Go through all executions.

    Parameters
    ----------
    ring : Ring

    Returns
    -------
    Outcome
    """
    first = _first(ring)
    came, before = {first: None}, {}
    todo, ends, race, wrong = deque([first]), [], None, None
    while todo:
        state = todo.popleft()
        for step in _steps(ring, state):
            if step.race and race is None and not ring.strong:
                race = (*_path(came, state), step.text)
            if step.wrong:
                wrong = wrong or (*_path(came, state), step.text)
                continue
            before.setdefault(step.state, []).append(state)
            if step.state not in came:
                came[step.state] = state, step.text
                todo.append(step.state)
        if all(side.done == ring.messages for side in state.sides):
            ends.append(state)
    alive, todo = set(ends), list(ends)
    while todo:
        for state in before.get(todo.pop(), ()):
            if state not in alive:
                alive.add(state)
                todo.append(state)
    return Outcome(ring, len(came), race, wrong, wrong is None and len(alive) < len(came))


def _first(ring):
    """Return the state in which nothing has happened; half of the messages come before the indices wrap around."""
    places = ring.slots * ring.words
    nothing = (0,) * (SLOTS + 2 * places)
    start = _start(ring)
    histories = tuple(((start if word < SLOTS else 0, nothing),) for word in range(SLOTS + places))
    return State((Side("room", 0, start), Side("waiting", 0, start)), (nothing, nothing), histories)


def _path(came, state):
    """Return the steps that led to a state."""
    steps = []
    while came[state] is not None:
        state, text = came[state]
        steps.append(text)
    return tuple(reversed(steps))


def _steps(ring, state):
    """Yield all next steps of both sides."""
    for who, looking, moving, own, others in (
        (PRODUCER, "room", "write", HEAD, TAIL),
        (CONSUMER, "waiting", "read", TAIL, HEAD),
    ):
        side = state.sides[who]
        if side.done == ring.messages:
            continue
        if side.at == looking:
            yield from _look(ring, state, who, others)
        elif side.at == moving:
            yield from _write(ring, state) if who == PRODUCER else _read(ring, state)
        else:
            yield _publish(ring, state, who, own)


def _look(ring, state, who, others):
    """Find out how many messages may be passed, for every number that may be wanted."""
    side, span = state.sides[who], 1 << ring.bits
    own = (_start(ring) + side.done) % span
    relaxed = ring.flaw == (ROOM if who == PRODUCER else ACQUIRE)
    following = "publish" if who == PRODUCER and ring.flaw == EARLY else "write" if who == PRODUCER else "read"

    def usable(seen):
        return ring.slots - (own - seen) % span if who == PRODUCER else (seen - own) % span

    for wanted in range(1, min(ring.batch, ring.messages - side.done) + 1):
        if usable(side.seen) >= wanted:
            text = f"{_NAMES[who]}: may pass {wanted} by its own copy of the index"
            yield Step(_moved(state, who, side._replace(at=following, count=wanted, word=0)), text)
            continue
        for when, (seen, carried) in _visible(ring, state, who, others):
            view = _with(state.views[who], others, when)
            if not relaxed:
                view = tuple(map(max, view, carried))
            count = min(usable(seen), wanted)
            at = side.at if count == 0 else following
            after = _moved(state, who, side._replace(at=at, seen=seen, count=count, word=0), view)
            order, index = "relaxed" if relaxed else "acquire", ("head", "tail")[others]
            yield Step(after, f"{_NAMES[who]}: loads {index} = {seen} ({order}), may pass {count}")


def _write(ring, state):
    """Write the producer's next word; nobody may have read its place beyond its view."""
    side, view = state.sides[PRODUCER], state.views[PRODUCER]
    word, value = _place(ring, side), _value(ring, side)
    reads = word + ring.slots * ring.words
    race = state.views[CONSUMER][reads] > view[reads]
    side = side._replace(word=side.word + 1)
    if side.word == side.count * ring.words:
        side = _passed(side) if ring.flaw == EARLY else side._replace(at="publish")
    history = state.histories[word]
    histories = _with(state.histories, word, (*history, (value, (0,) * len(view))))
    after = _moved(state, PRODUCER, side, _with(view, word, len(history)))._replace(histories=histories)
    text = f"producer: writes {value} into word {word - SLOTS} of the slots"
    return [Step(after, text + (", which was read without its knowledge: race" if race else ""), race)]


def _read(ring, state):
    """Read the consumer's next word; there may be no store to it beyond its view."""
    side, view = state.sides[CONSUMER], state.views[CONSUMER]
    word, expected = _place(ring, side), _value(ring, side)
    reads = word + ring.slots * ring.words
    race = len(state.histories[word]) - 1 > view[word]
    side = side._replace(word=side.word + 1)
    if side.word == side.count * ring.words:
        side = side._replace(at="release")
    for when, (value, _) in _visible(ring, state, CONSUMER, word):
        seen = _with(_with(view, word, when), reads, view[reads] + 1)
        text = f"consumer: reads {value} from word {word - SLOTS} of the slots"
        if race:
            text += ", of which there is a store beyond its knowledge: race"
        if value != expected:
            text += f"; the message is {expected}"
        yield Step(_moved(state, CONSUMER, side, seen), text, race, value != expected)


def _publish(ring, state, who, own):
    """Store a side's own index."""
    side, view = state.sides[who], state.views[who]
    index = (_start(ring) + side.done + side.count) % (1 << ring.bits)
    relaxed = ring.flaw == (RELEASE if who == PRODUCER else GIVEN_BACK)
    history = state.histories[own]
    view = _with(view, own, len(history))
    carried = _with((0,) * len(view), own, len(history)) if relaxed else view
    early = who == PRODUCER and ring.flaw == EARLY
    side = side._replace(at="write") if early else _passed(side)
    histories = _with(state.histories, own, (*history, (index, carried)))
    text = f"{_NAMES[who]}: stores {('head', 'tail')[own]} = {index} ({'relaxed' if relaxed else 'release'})"
    return Step(_moved(state, who, side, view)._replace(histories=histories), text)


def _passed(side):
    """Return a side that has passed what it was passing."""
    return Side("room" if side.at in ("write", "publish") else "waiting", side.done + side.count, side.seen)


def _visible(ring, state, who, word):
    """Return the stores that a load may take, as (when, (value, view))."""
    history, known = state.histories[word], state.views[who][word]
    return list(enumerate(history))[-1 if ring.strong else known :]


def _start(ring):
    """Return the index of the first message."""
    return -(ring.messages // 2) % (1 << ring.bits)


def _place(ring, side):
    """Return the word in which the next word of a side's messages lies."""
    message, word = divmod(side.word, ring.words)
    index = (_start(ring) + side.done + message) % (1 << ring.bits)
    return SLOTS + index % ring.slots * ring.words + word


def _value(ring, side):
    """Return what the next word of a side's messages must be; never 0, which was there before."""
    return side.done * ring.words + side.word + 1


def _moved(state, who, side, view=None):
    """Return the state after a step of one side."""
    views = state.views if view is None else _with(state.views, who, view)
    return state._replace(sides=_with(state.sides, who, side), views=views)


def _with(values, at, value):
    """Return a tuple with one element replaced."""
    return (*values[:at], value, *values[at + 1 :])
