"""Checks of a running Tidemark, by its HTTP API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from rules.errors import AuthenticationError, TidemarkError, UnreachableError
from rules.version import VERSION
from service.views.doctor import Area, Check, CheckState

if TYPE_CHECKING:
    from service.cli.server.api_client import ApiClient, Row

LATE: Final = 3.0  # intervals since the last round


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
    yield _round(status.get("round") or {})
    storage = status.get("storage") or {}
    is_stored = storage.get("state") == "stored"
    yield _check(
        CheckState.OK if is_stored else CheckState.UNKNOWN,
        str(storage.get("state")),
        storage.get("error"),
        subject="storage of the service",
    )


def _round(last: Any) -> Check:
    subject = "round of the service"
    age, interval = last.get("age_seconds"), last.get("interval_seconds") or 0.0
    if age is None:
        return _check(CheckState.UNKNOWN, "none yet", last.get("error"), subject=subject)
    is_late = age > LATE * interval
    outcome = str(last.get("outcome"))
    is_known = not is_late and last.get("error") is None
    return _check(
        CheckState.OK if is_known else CheckState.UNKNOWN,
        f"{outcome}, {age:.0f} s ago",
        last.get("error"),
        subject=subject,
    )


def _check(
    state: CheckState, summary: str, detail: str | None = None, *, subject: str = "service"
) -> Check:
    return Check(area=Area.SERVICE, subject=subject, state=state, summary=summary, detail=detail)
