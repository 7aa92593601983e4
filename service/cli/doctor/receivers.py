"""Checks of the receivers of alerts: whether their names lead to addresses that may be called. Nothing is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from service.views.doctor import Area, Check, CheckState

if TYPE_CHECKING:
    from service.alerting.receivers.receivers import Receiver
    from service.alerting.sending.address_guard import AddressGuard
    from service.alerting.sending.calls import Resolve
    from service.settings import AlertingSettings

RESOLVE_SECONDS: Final = 10.0
TEST: Final = "`tidemark receivers test {}` sends a message."


def receiver_checks(settings: AlertingSettings) -> Iterator[Check]:
    """Yield a check for each receiver, and one if nobody is notified."""
    from service.alerting.sending.calls import system_resolve  # noqa: PLC0415 - keeps `--help` fast

    receivers = settings.receivers_by_name()
    if not receivers:
        yield _check("receivers", CheckState.WARN, "none: nobody is notified", "docs/alerts.md")
    elif settings.default_receiver is None:
        detail = "Alerts that no route takes go to nobody: alerting.default_receiver."
        yield _check("receivers", CheckState.WARN, "no default receiver", detail)
    guard = settings.guard()
    for name, receiver in receivers.items():
        yield asyncio.run(check_receiver(name, receiver, guard, system_resolve))


async def check_receiver(
    name: str, receiver: Receiver, guard: AddressGuard, resolve: Resolve
) -> Check:
    """Return the check of one receiver; its path is a secret and not part of it."""
    from service.alerting.sending.address_guard import AddressDeniedError  # noqa: PLC0415
    from service.alerting.sending.calls import UnknownNameError  # noqa: PLC0415

    url, subject = receiver.url, f"receiver {name}"
    try:
        async with asyncio.timeout(RESOLVE_SECONDS):
            addresses: Sequence[str] = await resolve(url.host, url.port)
        for address in addresses:
            guard.check(address)
    except TimeoutError:
        return _check(subject, CheckState.UNKNOWN, "no name server answers", url.host)
    except UnknownNameError as exc:
        return _check(subject, CheckState.MISSING, "has no address", str(exc))
    except AddressDeniedError as exc:
        return _check(subject, CheckState.MISSING, "may not be called", str(exc))
    return _check(subject, CheckState.OK, "name resolves", TEST.format(name))


def _check(subject: str, state: CheckState, summary: str, detail: str | None = None) -> Check:
    return Check(area=Area.RECEIVER, subject=subject, state=state, summary=summary, detail=detail)
