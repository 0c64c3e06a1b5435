"""Words of the event that `photonlab.replay` hands to the functions that it calls; all are uint64.

===================  ================================================================================================
TIME                 nanoseconds since midnight
LOCATE               stock locate of the instrument
TYPE                 the message's type, as a byte: ord("A")
SEQUENCE             number of the message in the file, from 1
SIDE                 0 to buy, 1 to sell: of the order
REF                  reference of the order, 0 if the message names none
PRICE                of the order, of a replace the new one, of a trade or cross its own; units of 0.0001
SHARES               added, taken away, traded, or of a replace the new ones; of a delete 0
NEW_REF              of a replace
BID … ASK_SHARES     the best bid and offer now, 0 if there is none
OLD_BID …            and before the message
===================  ================================================================================================

On time (``on_time``) only TIME and SEQUENCE, the number of messages until then, are set.
"""

from photonlab.systems.called_loop import (
    ASK,
    ASK_SHARES,
    BID,
    BID_SHARES,
    LOCATE,
    NEW_REF,
    OLD_ASK,
    OLD_ASK_SHARES,
    OLD_BID,
    OLD_BID_SHARES,
    PRICE,
    REF,
    SEQUENCE,
    SHARES,
    SIDE,
    TIME,
    TYPE,
)

__all__ = [
    "ASK", "ASK_SHARES", "BID", "BID_SHARES", "LOCATE", "NEW_REF", "OLD_ASK", "OLD_ASK_SHARES", "OLD_BID",
    "OLD_BID_SHARES", "PRICE", "REF", "SEQUENCE", "SHARES", "SIDE", "TIME", "TYPE",
]  # fmt: skip
