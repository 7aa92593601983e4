"""Checks of a running Tidemark, by its HTTP API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rules.errors import AuthenticationError, TidemarkError, UnreachableError
from rules.version import VERSION
from service.views.doctor import Area, Check, CheckState

if TYPE_CHECKING:
    from service.cli.server.api_client import ApiClient, Row

LATE: Final = 3.0  # intervals since the last round
COMPLETE: Final = "complete"  # outcome of a round without gaps


def running_checks(client: ApiClient) -> Iterator[Check]:
    """Yield the checks of a running Tidemark.

    Raises:
        UnreachableError: nothing answers there, or it is no Tidemark.
        AuthenticationError: it denies us.
    """
    try:
        status = client.get("status")
    except (UnreachableError, AuthenticationError):
        raise
    except TidemarkError as exc:
        yield _check(CheckState.UNKNOWN, "cannot answer", str(exc))
        return
    yield from status_checks(status)


def status_checks(status: Row) -> Iterator[Check]:
    """Yield the checks of a status; fields of other versions may be absent."""
    version = status.get("version")
    is_same = version == VERSION
    detail = None if is_same else f"This command is version {VERSION}."
    yield _check(CheckState.OK if is_same else CheckState.WARN, f"version {version}", detail)
    yield _round(status)
    storage = status.get("storage") or {}
    is_stored = storage.get("state") == "stored"
    yield _check(
        CheckState.OK if is_stored else CheckState.UNKNOWN,
        str(storage.get("state")),
        storage.get("error"),
        subject="storage of the service",
    )


def _round(status: Row) -> Check:
    subject, last = "round of the service", status.get("round") or {}
    age, interval = last.get("age_seconds"), last.get("interval_seconds") or 0.0
    if age is None:
        return _check(CheckState.UNKNOWN, "none yet", last.get("error"), subject=subject)
    is_current = status.get("is_current") is True and age <= LATE * interval
    is_complete = last.get("outcome") == COMPLETE and last.get("error") is None
    return _check(
        CheckState.OK if is_current and is_complete else CheckState.UNKNOWN,
        f"{last.get('outcome')}, {age:.0f} s ago",
        last.get("error") or _causes(status),
        subject=subject,
    )


def _causes(status: Row) -> str | None:
    """Return what the last round could not see, None if it saw everything."""
    by_cause = (status.get("gaps_by_cause") or {}).items()
    gaps = ", ".join(f"{count} {cause}" for cause, count in by_cause)
    return f"Not everything was seen: {gaps}." if gaps else None


def _check(
    state: CheckState, summary: str, detail: str | None = None, *, subject: str = "service"
) -> Check:
    return Check(area=Area.SERVICE, subject=subject, state=state, summary=summary, detail=detail)
