"""Every error that Tidemark raises, split by who has to react.

    TidemarkError
    ├── SettingsError      the operator corrects a setting; the program exits at start
    ├── SandboxError       the user of the sandbox corrects the machine or the command
    ├── CollectError       the cluster could not be queried at all; the next round tries again
    │   ├── UnreachableError     no bootstrap address answered
    │   └── AuthenticationError  a broker rejected the credentials
    ├── StoreError         the database rejected a statement or is unavailable
    ├── NotifyError        a receiver rejected a notification or is unavailable
    ├── BaselineRunError   a baseline run failed; the previous baselines stay in force
    ├── NotInstalledError  an extra is not installed; the text says how to install it
    └── RequestError       a running Tidemark rejects the request of a command
        ├── NotThereError      it has nothing of that name
        └── ConflictError      the present state does not allow it, or somebody else changed it

An expected outcome is not an error: an unreachable partition is a `Gap` of the snapshot.
"""

from __future__ import annotations


class TidemarkError(Exception):
    """Base of all errors of Tidemark; its text is one line for a person."""


class SettingsError(TidemarkError):
    """A setting is unknown, malformed or contradicts another one."""


class SandboxError(TidemarkError):
    """The local cluster cannot do what was requested; the text says what to do about it."""


class CollectError(TidemarkError):
    """A cluster could not be queried at all, so that there is no snapshot."""

    retryable = True


class UnreachableError(CollectError):
    """No bootstrap address gave a usable answer."""


class AuthenticationError(CollectError):
    """A broker answered and rejected the credentials or the security protocol."""

    retryable = False


class StoreError(TidemarkError):
    """The database rejected a statement, is unavailable, or holds data that this version cannot read."""

    def __init__(self, message: str, *, retryable: bool, is_of_values: bool = False) -> None:
        """`is_of_values`: the database rejects the values of a row, and would do so again."""
        super().__init__(message)
        self.retryable = retryable
        self.is_of_values = is_of_values


class BaselineRunError(TidemarkError):
    """A baseline run failed in Spark; the text says why, and the next run tries again."""


class NotInstalledError(TidemarkError):
    """What was requested needs a package that is not installed; the text says how to install it."""


class RequestError(TidemarkError):
    """A running Tidemark rejects the request of a command."""


class NotThereError(RequestError):
    """A running Tidemark has nothing of the name in the request."""


class ConflictError(RequestError):
    """The request does not fit the present state."""
