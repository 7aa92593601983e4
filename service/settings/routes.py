"""Settings of routes, inhibitions and times to keep firing."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from service.alerting.alerts.inhibition import Inhibition
from service.alerting.alerts.matchers import MatcherError, parse_matchers
from service.settings.group import Group
from service.settings.scrapes import parted

_LONGEST: Final = 31 * 86_400  # seconds; a month


def _readable(text: str) -> str:
    try:
        parse_matchers(text)
    except MatcherError as exc:
        raise PydanticCustomError("matchers", "{why}", {"why": str(exc)}) from exc
    return text


MatcherText = Annotated[str, AfterValidator(_readable)]
Interval = Annotated[float, Field(gt=0, le=_LONGEST)]
Wait = Annotated[float, Field(ge=0, le=_LONGEST)]


class RouteSettings(Group):
    """One route; what it leaves out is as for alerts that no route takes."""

    receiver: Annotated[str, Field(min_length=1)]
    """Name of a receiver."""

    matchers: MatcherText
    """Which alerts it takes, like severity="critical",topic=~"orders.*"."""

    group_by: str | None = None
    """Comma-separated labels; alerts that agree in them share a notification."""

    group_wait_seconds: Wait | None = None
    """Seconds from a group's first alert to its first notification."""

    group_interval_seconds: Interval | None = None
    """Seconds between notifications about changes of a group."""

    repeat_interval_seconds: Interval | None = None
    """Seconds after which a notification of firing alerts is repeated."""

    send_resolved: bool | None = None
    """Whether resolved alerts are notified."""

    continue_: bool = Field(default=False, alias="continue")
    """Whether the routes behind it may take the same alert too."""


class InhibitionSettings(Group):
    """Alerts of `source` mute those of `target` that agree with them in the labels of `equal`."""

    source: MatcherText
    target: MatcherText
    equal: str = "cluster"

    def inhibition(self) -> Inhibition:
        """Return it."""
        return Inhibition(
            source=parse_matchers(self.source),
            target=parse_matchers(self.target),
            equal=tuple(parted(self.equal)),
        )


class KeepFiringSettings(Group):
    """For how long a rule's alerts go on after the first round that misses them."""

    rule: Annotated[str, Field(min_length=1)]
    seconds: Interval
