"""Reads the feature levels of the cluster: `metadata.version`, `transaction.version` and others (KIP-584).

A broker says them in its ApiVersions answer, which needs no permission. That of the connection's set-up is
as old as the connection, and levels are raised at run time: so any broker is queried again, once a minute.
Versions below 3 have no levels; version 3 leaves out supported features whose lowest level is 0.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

from collectors.session import Session
from collectors.translate import failure_of, present
from collectors.wire import codec
from collectors.wire.api import API_VERSIONS
from collectors.wire.failure import Failure
from rules.facts.configs import FeatureLevels
from rules.facts.gap import GapCause
from rules.version import VERSION

LEVELS_SINCE: Final = 3  # version of the answer
CLIENT: Final = {"client_software_name": "tidemark", "client_software_version": VERSION}


def _body(version: int) -> bytes:
    return codec.encode_request(API_VERSIONS, version, CLIENT if version >= LEVELS_SINCE else {})


@dataclass(slots=True)
class FeatureReader:
    """Remembers the levels; what a release is too old to say is no failure."""

    levels: FeatureLevels | None = None
    failure: Failure | None = None
    _read_at: float | None = None  # monotonic seconds

    def collect(self, session: Session, max_age_seconds: float) -> bool:
        """Read the levels if they are older than this; return whether they were read."""
        now = time.monotonic()
        if self._read_at is not None and now - self._read_at < max_age_seconds:
            return False
        answer = session.request_any(API_VERSIONS, _body)
        if not isinstance(answer, Failure) and int(answer.error_code) != codec.NO_ERROR:
            answer = failure_of(int(answer.error_code), "ApiVersions")
        if isinstance(answer, Failure):
            self.failure = None if answer.cause is GapCause.UNSUPPORTED else answer
            return True
        self.levels, self.failure, self._read_at = _levels(answer), None, now
        return True


def _levels(answer: Any) -> FeatureLevels | None:
    if not hasattr(answer, "finalized_features"):
        return None
    return FeatureLevels(
        finalized={f.name: int(f.max_version_level) for f in answer.finalized_features},
        supported={
            f.name: (int(f.min_version), int(f.max_version)) for f in answer.supported_features
        },
        epoch=present(int(answer.finalized_features_epoch)),
    )
