"""The commands of the command line, a room each: `add` describes one to argparse, and `_run` does it."""
