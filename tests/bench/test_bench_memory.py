"""What a whole service holds at 10,000 partitions x 1,001 groups with history and time lag on.

Printed are memory now and at most: at the start, in rounds, while an hour of 188,000 series is
shipped and while a day of them is folded. PostgreSQL's processes are not counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.bench.own_process import print_told

LIMIT_SECONDS: Final = 900


@pytest.mark.timeout(LIMIT_SECONDS + 30)
def test_memory_with_history(folder: Path) -> None:
    print_told("tests.bench.history_service", "run", str(folder / "kept"), seconds=LIMIT_SECONDS)
