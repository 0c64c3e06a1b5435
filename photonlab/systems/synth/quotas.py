"""How many messages of each type a synthetic day has: exact quotas after the published mix, fixed beforehand."""

from typing import NamedTuple

from photonlab.systems.synth.presets import C_PERCENT, F_PERCENT, FULL_PERCENT, MIX, MIX_TOTAL

# classes of messages that the kernel draws at random; of the first, which of the two is decided by the live orders
ADD_DELETE, REPLACE, CANCEL, EXECUTE, EXECUTE_PRICE, TRADE, IMBALANCE, RETAIL, BROKEN = range(9)
CLASSES = 9


class Quotas(NamedTuple):
    """Messages of a day by what they are.

    Attributes
    ----------
    add, attributed, delete : int
        A, F and D.
    replace, cancel : int
    execute, execute_price, cross_executions : int
        E, and C outside and inside of crosses.
    full : int
        Of the executions, those that take all of an order.
    trade, imbalance, retail, broken : int
        P, I (at random times), N and B.
    positions : int
        L for each instrument.
    """

    add: int
    attributed: int
    delete: int
    replace: int
    cancel: int
    execute: int
    execute_price: int
    cross_executions: int
    full: int
    trade: int
    imbalance: int
    retail: int
    broken: int
    positions: int

    @property
    def live_at_end(self) -> int:
        """Orders that outlive the day if every quota is met."""
        return self.add + self.attributed - self.delete - self.full


def make_quotas(messages: int, scripted: int, crosses: int, instruments: int, with_positions: bool) -> Quotas:
    """Share a day's messages out.

    Parameters
    ----------
    messages : int
        Of the day.
    scripted : int
        Of them, those that the schedule sets beforehand, without the executions in crosses and without L.
    crosses : int
        Of the scripted ones.
    instruments : int
    with_positions : bool
        Whether there is room for L messages.

    Returns
    -------
    Quotas
    """
    others = messages - sum(messages * count // MIX_TOTAL for count in MIX.values())
    positions = 0
    if with_positions:
        positions = min(8, max(1, others // (5 * instruments)))
    random = others - scripted - positions * instruments
    wanted = min(4, max(0, messages - scripted - positions * instruments) // 16)  # one of each of P, I, N, B
    random = max(random, wanted)
    booked = max(0, messages - scripted - positions * instruments - random)
    random = messages - scripted - positions * instruments - booked
    broken = min(1, random) if random < 2000 else random * 3 // 1000
    retail = max(min(1, random - broken), random * 57 // 1000)
    trade = max(min(1, random - broken - retail), random * 340 // 1000)
    imbalance = random - broken - retail - trade

    total = sum(MIX.values())
    share = {kind: booked * count // total for kind, count in MIX.items()}
    if booked >= 40:
        share["execute"] = max(2, share["execute"])
        share["cancel"] = max(1, share["cancel"])
    full = share["execute"] * FULL_PERCENT // 100
    share["delete"] = min(share["delete"], (booked - share["execute"] - share["cancel"] - share["replace"] - full) // 2)
    add = booked - share["execute"] - share["cancel"] - share["replace"] - share["delete"]
    attributed = max(1, add * F_PERCENT // 100) if add >= 20 else 0
    priced = max(1, share["execute"] * C_PERCENT // 100) if share["execute"] >= 2 else 0
    crossing = priced * 3 // 4 if crosses else 0
    return Quotas(
        add - attributed, attributed, share["delete"], share["replace"], share["cancel"], share["execute"] - priced,
        priced - crossing, crossing, full, trade, imbalance, retail, broken, positions,
    )  # fmt: skip
