"""Entry point of the `tidemark` console script and of `python -m service`."""

from __future__ import annotations

import sys

from service.cli.main import run


def main() -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(run())


if __name__ == "__main__":
    main()
