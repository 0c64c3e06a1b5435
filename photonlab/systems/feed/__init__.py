"""A feed over UDP: the exchange's side (simulator, server of lost messages) and the receiver's (receiver, consumer)."""
