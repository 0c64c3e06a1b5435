"""What the notebooks call: each experiment's tables, charts, sentences and rows."""
