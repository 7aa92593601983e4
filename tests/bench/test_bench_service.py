"""What the whole service costs at 10,000 partitions x 1,001 groups; stats are printed.

500 rounds back to back with PostgreSQL, metrics and HTTP, in a process of its own. The bar of its
memory is 250 MiB after all rounds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.bench.own_process import print_told

LIMIT_SECONDS: Final = 600


@pytest.mark.timeout(LIMIT_SECONDS + 30)
def test_rounds_of_the_whole_service(folder: Path) -> None:
    print_told("tests.bench.whole_service", str(folder / "data"), seconds=LIMIT_SECONDS)
