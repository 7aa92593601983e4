"""Times as whole numbers: microseconds since 1970-01-01 UTC, as memory and checkpoints keep them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)
SECOND_US: Final = 1_000_000
