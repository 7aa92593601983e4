"""Records of equal content in two logs: what a producer may have sent again under another id or epoch.

Equal means key, value and headers. Two records may be equal and still be two: that is possible, never certain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from rules.facts.log_files import ControlType, LogBatch

MAX_RECORDS: Final = 1_000_000  # that are compared: 200 MB of digests
_DIGEST_BYTES: Final = 16
_NOT_SEEN: Final = -1

Digest = bytes


def digest_of(
    key: bytes | None, value: bytes | None, headers: Iterable[tuple[bytes, bytes | None]]
) -> Digest:
    """Return a digest of what an application wrote; absent and empty differ."""
    digest = blake2b(digest_size=_DIGEST_BYTES)
    parts = [key, value]
    for name, content in headers:
        parts += [name, content]
    for part in parts:
        digest.update(b"-" if part is None else b"%d:" % len(part))
        digest.update(part or b"")
    return digest.digest()


@dataclass(slots=True)
class ContentMatches:
    """The contents of the copy's records, and at which offset of the new log each was seen first."""

    is_complete: bool = True  # every record of the copy is among them
    _seen: dict[Digest, int] = field(default_factory=dict)  # where it stays
    # In transactions without an end so far, by producer id: any of them may be aborted.
    _open: dict[int, dict[Digest, int]] = field(default_factory=dict)

    def take_old(self, digest: Digest) -> None:
        """Add a record of the copy."""
        if len(self._seen) < MAX_RECORDS:
            self._seen[digest] = _NOT_SEEN
        elif digest not in self._seen:
            self.is_complete = False

    def take_new(self, batch: LogBatch, records: Iterable[tuple[int, Digest]]) -> None:
        """Take the records of a batch of the new log, with their offsets."""
        places: dict[Digest, int] = {}
        for offset, digest in records:
            if self._seen.get(digest) == _NOT_SEEN:
                places.setdefault(digest, offset)
        if batch.producer_id is None or not batch.is_transactional:
            self._seen.update(places)
        elif places:
            known = self._open.setdefault(batch.producer_id, {})
            known.update({each: at for each, at in places.items() if each not in known})

    def take_marker(self, batch: LogBatch) -> None:
        """Forget what an aborted transaction of the new log had: no read_committed consumer gets it."""
        if batch.producer_id is None or batch.control is None:
            return
        places = self._open.pop(batch.producer_id, {})
        if batch.control.type is ControlType.COMMIT:
            fresh = {each: at for each, at in places.items() if self._seen[each] == _NOT_SEEN}
            self._seen.update(fresh)

    def offset_of(self, digest: Digest) -> int | None:
        """Return where the new log has a record of this content; None if nowhere."""
        offset = self._seen.get(digest, _NOT_SEEN)
        if offset != _NOT_SEEN:
            return offset
        return min((each[digest] for each in self._open.values() if digest in each), default=None)
