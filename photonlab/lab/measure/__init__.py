"""How a time is taken, and what may be said of it."""
