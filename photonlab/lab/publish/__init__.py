"""From notebooks to one page: run, lay out, draw, show."""
