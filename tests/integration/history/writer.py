"""A process that writes rounds of history as fast as it can, and tells each that it has written.

Started with a folder and the number of the first round; rounds are 15 s apart from noon on.
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from tests.integration.history.persistence import INTERVAL, Kept


def main() -> None:
    """Write until killed."""
    kept = Kept(Path(sys.argv[1]))
    for number in count(int(sys.argv[2])):
        kept.round(number * INTERVAL)
        if number % 50 == 0:
            kept.shipper.ship()
        print(number, flush=True)  # noqa: T201 - what the test waits for


if __name__ == "__main__":
    main()
