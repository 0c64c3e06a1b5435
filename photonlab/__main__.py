"""`python -m photonlab` is `photonlab`."""

import sys

from photonlab.cli import main

if __name__ == "__main__":
    sys.exit(main())
