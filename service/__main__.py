"""Entry point of the `tidemark` console script and of `python -m service`."""

from __future__ import annotations

import signal
import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        from service.cli.main import run  # noqa: PLC0415 - Ctrl-C may come while this imports

        code = run()
    except KeyboardInterrupt:  # outside of the command, which says "interrupted" itself
        code = INTERRUPTED
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # while the interpreter ends, without a word
    sys.exit(code)


if __name__ == "__main__":
    main()
