"""Every error that Tidemark raises, split by who has to react.

    TidemarkError
    ├── SettingsError      the operator mends a setting; the program exits at start
    ├── SandboxError       the user of the sandbox mends the machine or the command
    ├── CollectError       the cluster could not be asked at all; the next round tries again
    │   ├── UnreachableError     no bootstrap address answered
    │   └── AuthenticationError  a broker answered and said no
    ├── StoreError         the database rejected or is away
    ├── NotifyError        a receiver rejected or is away
    ├── BaselineRunError         nothing could be learnt from a night; what was learnt before stays in force
    └── RequestError       a running Tidemark does not do what a command asked it for
        ├── NotThereError      it has nothing of that name
        └── ConflictError      not as things stand, or somebody else changed them meanwhile

An expected outcome is not an error: an unreachable partition is a `Gap` of the snapshot.
"""

from __future__ import annotations


class TidemarkError(Exception):
    """Base of all errors that are ours; its text is one line for a person."""


class SettingsError(TidemarkError):
    """A setting is unknown, malformed or contradicts another one."""


class SandboxError(TidemarkError):
    """The local cluster cannot do what was asked; the text says what to do about it."""


class CollectError(TidemarkError):
    """A cluster could not be asked at all, so that there is no snapshot."""

    retryable = True


class UnreachableError(CollectError):
    """No bootstrap address gave a usable answer."""


class AuthenticationError(CollectError):
    """A broker answered and rejected the credentials or the security protocol."""

    retryable = False


class StoreError(TidemarkError):
    """The database rejected, is away, or holds what this version cannot read."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable


class BaselineRunError(TidemarkError):
    """Spark did not make a night; the text says why, and the next run tries again."""


class RequestError(TidemarkError):
    """A running Tidemark cannot read what a command sent it."""


class NotThereError(RequestError):
    """A running Tidemark has nothing of the name that a command gave it."""


class ConflictError(RequestError):
    """What a command asks for does not fit what is there now."""
