"""Why a request has no answer: a value, because one silent broker is an expected outcome."""

from __future__ import annotations

from dataclasses import dataclass

from rules.facts.gap import GapCause


@dataclass(frozen=True, slots=True)
class Failure:
    """The cause that a gap will carry, and a sentence for a person."""

    cause: GapCause
    why: str
    rejected: bool = False  # the broker seems to reject how we connect: credentials, TLS or SASL


class ConnectionFailedError(Exception):
    """Ends a connection; carries the failure that all its open requests get."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.why)
        self.failure = failure
