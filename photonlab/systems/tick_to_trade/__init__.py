"""Tick to trade: market data in SBE in, orders in SBE out."""
