"""`python -m headstock` is `headstock`."""

import sys

from headstock.cli import main

if __name__ == "__main__":
    sys.exit(main())
