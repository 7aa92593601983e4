"""Entry point of the `tidemark` console script and of `python -m service`."""

from __future__ import annotations

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        from service.cli.main import run  # noqa: PLC0415 - Ctrl-C may come while this imports
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    sys.exit(run())


if __name__ == "__main__":
    main()
