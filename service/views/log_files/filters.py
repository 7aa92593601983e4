"""The options that leave things out: of one producer, from one offset to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rules.facts.column import Bools
from rules.facts.log_files import BatchBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What is shown; None leaves nothing out."""

    producer_id: int | None = None
    start: int | None = None  # offset
    end: int | None = None  # exclusive

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Return the filter of a command's options."""
        return cls(producer_id=options["producer_id"], start=options["start"], end=options["end"])

    @property
    def is_empty(self) -> bool:
        """Whether it leaves nothing out."""
        return self.producer_id is None and self.start is None and self.end is None

    def has(self, first: int | None, last: int | None, producer_id: int | None = None) -> bool:
        """Whether something with these offsets, [first, last], and of this producer is shown.

        What has no producer, or no known offset, is not left out for that.
        """
        if None not in (self.producer_id, producer_id) and producer_id != self.producer_id:
            return False
        is_before = self.start is not None and last is not None and last < self.start
        is_behind = self.end is not None and first is not None and first >= self.end
        return not is_before and not is_behind

    def rows(self, block: BatchBlock) -> Bools:
        """Return which batches are shown: of the producer, and with an offset between the two."""
        rows = np.ones(len(block), np.bool_)
        if self.producer_id is not None:
            rows &= block.producer_id == self.producer_id
        if self.start is not None:
            rows &= block.last_offset >= self.start
        if self.end is not None:
            rows &= block.base_offset < self.end
        return rows
