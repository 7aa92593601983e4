"""Settings of alerting: who is notified of alerts, how often, and what inhibits them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, model_validator

from rules.errors import SettingsError
from rules.verdict import RuleMeta
from service.alerting.alerts.evaluate import AlertingConfig
from service.alerting.alerts.inhibition import DEFAULT_INHIBITIONS, Inhibition
from service.alerting.alerts.matchers import parse_matchers
from service.alerting.alerts.routes import Route, RouteError, Routing
from service.alerting.receivers.receivers import AlertmanagerReceiver, Receiver
from service.alerting.sending.address_guard import AddressGuard
from service.settings.receivers import ReceiverSettings
from service.settings.values import Group, Tables, parted, read_by

_AT_ONCE: Final = timedelta(0)
_WEB: Final = ("http://", "https://")
_LONGEST: Final = 31 * 86_400  # seconds; a month


def _web_address(text: str) -> str:
    if text and not text.startswith(_WEB):
        raise ValueError("write an address that begins with https://")
    return text.rstrip("/")


WebAddress = Annotated[str, AfterValidator(_web_address)]
MatcherText = Annotated[str, read_by(parse_matchers)]
AddressRanges = Annotated[str, read_by(lambda text: AddressGuard.of(parted(text)))]
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
        """Return the inhibition."""
        return Inhibition(
            source=parse_matchers(self.source),
            target=parse_matchers(self.target),
            equal=tuple(parted(self.equal)),
        )


class KeepFiringSettings(Group):
    """For how long a rule's alerts go on after the first round that misses them."""

    rule: Annotated[str, Field(min_length=1)]
    seconds: Interval


class AlertingSettings(Group):
    """Who is notified of alerts, in which groups, and how often."""

    receivers: Annotated[
        Tables[ReceiverSettings],
        Field(examples=[[{"name": "pager", "url": "https://pager.example/hook"}]]),
    ] = ()
    """List of tables, as [[alerting.receivers]] in the file or as JSON in the environment, where
    TIDEMARK_ALERTING__RECEIVERS_FILE names a file with that JSON, for it holds secrets. kind is webhook
    (the default), alertmanager, slack or pagerduty; several signing_secrets have a comma between.
    Default: none, and nobody is notified."""

    default_receiver: Annotated[str | None, Field(examples=["pager"])] = None
    """Receiver of alerts that no route takes. Default: none, and nobody is notified of them."""

    routes: Annotated[
        Tables[RouteSettings],
        Field(examples=[[{"receiver": "pager", "matchers": 'severity="critical"'}]]),
    ] = ()
    """List of tables: the first route whose matchers an alert has takes it, and so do those behind it
    as long as each says continue = true. What a route does not say is as below. Default: none."""

    group_by: str = "incident,cluster"
    """Comma-separated labels; alerts that agree in them share a notification. "..." for each alone; with
    incident among them, alerts of no incident are grouped by alertname. Default: all losses that one
    broker caused, and otherwise all alerts of one rule in one cluster."""

    group_wait_seconds: Wait = 30.0
    """Seconds from a group's first alert to its first notification. Default: Alertmanager's; alerts
    that belong together mostly come within it."""

    group_interval_seconds: Interval = 300.0
    """Seconds between notifications about changes of a group. Default: Alertmanager's."""

    repeat_interval_seconds: Interval = 14_400.0
    """Seconds after which a notification of firing alerts is repeated. Default: Alertmanager's, 4 hours."""

    send_resolved: bool = True
    """Whether resolved alerts are notified. Default: yes, so that nobody investigates what is over."""

    fallback_receiver: Annotated[str | None, Field(examples=["pager"])] = None
    """Receiver of notifications that another one did not take in time or at all. Default: none; such
    notifications are only counted and logged."""

    fallback_after_seconds: Interval = 300.0
    """Seconds that a notification of firing alerts may wait before the fallback receiver gets it.
    Default: longer than most receivers take to restart, and short for a page."""

    watchdog_receiver: Annotated[str | None, Field(examples=["pager"])] = None
    """Receiver of an alert named Watchdog that always fires: a service that misses it reports that
    Tidemark is silent. Default: none, as such a service has to exist first."""

    watchdog_interval_seconds: Interval = 60.0
    """Seconds from one Watchdog to the next. Default: what such services are usually set to."""

    default_inhibitions: bool = True
    """Whether an alert is inhibited while one fires that explains it, like a partition that is offline.
    Default: yes, so that one fault pages once."""

    inhibitions: Annotated[
        Tables[InhibitionSettings],
        Field(
            examples=[
                [{"source": 'severity="critical"', "target": 'severity="info"', "equal": "topic"}]
            ]
        ),
    ] = ()
    """List of tables, beside the default ones: while an alert with source fires, those with target that
    agree with it in the comma-separated labels of equal are not notified. Default: none."""

    keep_firing_for: Annotated[
        Tables[KeepFiringSettings],
        Field(examples=[[{"rule": "consumer_group_stalled", "seconds": 120}]]),
    ] = ()
    """List of tables: for how many seconds a rule's alerts go on after the first round without their
    finding. Default: none, they end at once."""

    external_url: Annotated[WebAddress, Field(examples=["https://tidemark.example"])] = ""
    """URL of this Tidemark; notifications link there. Default: none, and no link."""

    runbook_url: Annotated[WebAddress, Field(examples=["https://wiki.example/rules"])] = ""
    """Address below which a page per rule lies, as <rule>.md; notifications link there. Default: none."""

    grafana_url: Annotated[WebAddress, Field(examples=["https://grafana.example"])] = ""
    """Address of a Grafana that has Tidemark's dashboards; notifications link to the panel that shows the
    alert (annotations dashboardURL and panelURL). Default: none, and no links."""

    private_ranges: Annotated[AddressRanges, Field(examples=["10.20.0.0/16,127.0.0.1/32"])] = ""
    """Comma-separated ranges of addresses that receivers may have besides public ones. Default: none, so
    that the URL of a receiver cannot reach internal services; link-local ones are always closed."""

    @property
    def is_set(self) -> bool:
        """Whether there is any receiver."""
        return bool(self.receivers)

    def receivers_by_name(self) -> dict[str, Receiver]:
        """Return the receivers by name, in the order of the settings."""
        return {receiver.name: receiver.receiver() for receiver in self.receivers}

    def guard(self) -> AddressGuard:
        """Return the guard that checks receivers' addresses."""
        return AddressGuard.of(parted(self.private_ranges))

    def routing(self) -> Routing:
        """Return all routes; without a default receiver, alerts that no route takes go nowhere."""
        receivers = self.receivers_by_name()
        name = self.default_receiver
        informed = {receiver.name for receiver in self.receivers if receiver.send_info}
        return Routing(
            default=None
            if name is None
            else self._route(receivers[name], takes_info=name in informed),
            routes=tuple(
                self._route(receivers[route.receiver], route, takes_info=route.receiver in informed)
                for route in self.routes
            ),
        )

    def config(self, rules: Mapping[str, RuleMeta]) -> AlertingConfig:
        """Return the configuration by which alerts are evaluated; `rules` are all rules by their id.

        Raises:
            SettingsError: `keep_firing_for` names an unknown rule.
        """
        unknown = [setting.rule for setting in self.keep_firing_for if setting.rule not in rules]
        if unknown:
            raise SettingsError(f"alerting.keep_firing_for: there is no rule {unknown[0]}")
        own = tuple(inhibition.inhibition() for inhibition in self.inhibitions)
        return AlertingConfig(
            rules=rules,
            routing=self.routing(),
            inhibitions=(*DEFAULT_INHIBITIONS, *own) if self.default_inhibitions else own,
            keep_firing_for={
                setting.rule: timedelta(seconds=setting.seconds) for setting in self.keep_firing_for
            },
        )

    @model_validator(mode="after")
    def _check_references(self) -> Self:
        for problem in self._problems():
            raise ValueError(problem)
        try:
            self.routing()
        except RouteError as exc:
            raise ValueError(str(exc)) from exc
        return self

    def _problems(self) -> Iterator[str]:
        counts = Counter(receiver.name for receiver in self.receivers)
        yield from (f"two receivers are named {name}" for name, many in counts.items() if many > 1)
        named = {
            "default_receiver": self.default_receiver,
            "fallback_receiver": self.fallback_receiver,
            "watchdog_receiver": self.watchdog_receiver,
            **{f"routes.{place}": route.receiver for place, route in enumerate(self.routes)},
        }
        for key, name in named.items():
            if name is not None and name not in counts:
                yield f"{key}: there is no receiver {name}"

    def _route(
        self, receiver: Receiver, settings: RouteSettings | None = None, *, takes_info: bool
    ) -> Route:
        def chosen(key: str) -> Any:
            own = None if settings is None else getattr(settings, key)
            return getattr(self, key) if own is None else own

        route = Route(
            receiver=receiver.name,
            matchers=() if settings is None else parse_matchers(settings.matchers),
            group_by=tuple(parted(chosen("group_by"))),
            group_wait=timedelta(seconds=chosen("group_wait_seconds")),
            group_interval=timedelta(seconds=chosen("group_interval_seconds")),
            repeat_interval=timedelta(seconds=chosen("repeat_interval_seconds")),
            send_resolved=chosen("send_resolved"),
            continue_=settings is not None and settings.continue_,
            takes_info=takes_info,
        )
        return (
            _as_push_route(route, receiver) if isinstance(receiver, AlertmanagerReceiver) else route
        )


def _as_push_route(route: Route, receiver: AlertmanagerReceiver) -> Route:
    """Return a route that pushes alerts as Prometheus does."""
    return replace(
        route,
        group_wait=_AT_ONCE,
        group_interval=receiver.resend_delay,
        repeat_interval=receiver.resend_delay,
        send_resolved=True,
        heeds_mutes=False,
        repeats_always=True,
    )
