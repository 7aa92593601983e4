"""A partition's log written offset by offset, as a broker would, and what a reader gets of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from collectors.wire.batches import AbortedTransaction, BatchHeader


@dataclass(frozen=True, slots=True)
class Written:
    """One batch: who wrote it, where, and which of its offsets still hold a record."""

    first: int
    last: int
    producer: int | None
    kept: frozenset[int]
    is_control: bool = False

    def header(self) -> BatchHeader:
        """Return the header that a fetch would show."""
        return BatchHeader(
            base_offset=self.first,
            last_offset=self.last,
            leader_epoch=1,
            producer_id=self.producer,
            producer_epoch=None if self.producer is None else 0,
            base_sequence=None if self.producer is None else 0,
            record_count=1 if self.is_control else len(self.kept),
            is_transactional=self.producer is not None,
            is_control=self.is_control,
        )


@dataclass(slots=True)
class Log:
    """A log under construction."""

    batches: list[Written] = field(default_factory=list)
    readable: set[int] = field(default_factory=set)  # offsets given to a read_committed reader
    aborted: list[tuple[int, int, int]] = field(default_factory=list)  # producer, first, marker
    _open: dict[int, list[Written]] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """Offset behind the last batch."""
        return self.batches[-1].last + 1 if self.batches else 0

    @property
    def last_stable_offset(self) -> int:
        """First offset of the oldest open transaction, or the end."""
        return min((found[0].first for found in self._open.values()), default=self.end)

    def append(self, producer: int | None, kept: list[bool]) -> None:
        """Write a batch; `kept` says which of its records compaction leaves."""
        left = frozenset(self.end + place for place, stays in enumerate(kept) if stays)
        batch = Written(self.end, self.end + len(kept) - 1, producer, left)
        self.batches.append(batch)
        if producer is None:
            self.readable |= left
        else:
            self._open.setdefault(producer, []).append(batch)

    def finish(self, producer: int, *, commit: bool) -> None:
        """Write the marker of a producer's open transaction, if there is one."""
        batches = self._open.pop(producer, None)
        if batches is None:
            return
        if commit:
            self.readable.update(*(batch.kept for batch in batches))
        else:
            self.aborted.append((producer, batches[0].first, self.end))
        marker = Written(self.end, self.end, producer, frozenset(), is_control=True)
        self.batches.append(marker)

    def fetch(self, start: int) -> tuple[list[BatchHeader], list[AbortedTransaction]]:
        """Return what a read_committed fetch from `start` answers: up to the last stable offset."""
        found = [batch for batch in self.batches if start <= batch.last]
        headers = [batch.header() for batch in found if batch.first < self.last_stable_offset]
        aborted = [
            AbortedTransaction(producer, first)
            for producer, first, marker in self.aborted
            if marker >= start
        ]
        return headers, aborted


@st.composite
def logs(draw: st.DrawFn, *, compacted: bool) -> Log:
    """Draw a log of a few producers that append, commit and abort."""
    log = Log()
    records = st.lists(st.booleans() if compacted else st.just(True), min_size=1, max_size=4)
    producers = st.sampled_from((7, 8, 9))
    for _ in range(draw(st.integers(0, 12))):
        match draw(st.sampled_from(("plain", "send", "send", "commit", "abort", "abort"))):
            case "plain":
                log.append(None, draw(records))
            case "send":
                log.append(draw(producers), draw(records))
            case end:
                log.finish(draw(producers), commit=end == "commit")
    return log
