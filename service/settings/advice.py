"""Advice about settings that are valid and yet probably not meant. Pure.

`tidemark config check` prints it, and `tidemark serve` logs it at its start.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from rules.catalogue.all_rules import RULES
from rules.facts.broker_memory import LONGEST_UNSEEN
from rules.facts.scrapes import EndpointKind
from rules.verdict import Severity
from service.alerting.alerts.identity import ALERTNAME
from service.alerting.alerts.matchers import all_match
from service.alerting.alerts.routes import Route
from service.settings.alerting import AlertingSettings
from service.settings.groups import HttpSettings, Settings
from service.settings.scrapes import ScrapeSettings
from service.settings.values import parted


def warnings(settings: Settings) -> list[str]:
    """Return one line per thing that may not be meant, without any secret."""
    kafka, interval = settings.kafka, settings.service.interval_seconds
    is_open = not is_loopback(settings.http)
    sasl = {"kafka.sasl_username": kafka.sasl_username, "kafka.sasl_password": kafka.sasl_password}
    credentials = " and ".join(key for key, value in sasl.items() if value is not None)
    alerting, scrapes = settings.alerting, settings.scrapes
    odd = {
        f"kafka.round_timeout_seconds ({kafka.round_timeout_seconds:g}) is not below "
        f"service.interval_seconds ({interval:g}): a slow round delays the next one": (
            kafka.round_timeout_seconds >= interval
        ),
        f"service.interval_seconds ({interval:g}): controller_absent reports nothing, because it "
        "needs rounds less than two minutes apart": interval >= LONGEST_UNSEEN.total_seconds(),
        f"kafka.request_timeout_seconds ({kafka.request_timeout_seconds:g}) is not below "
        f"kafka.round_timeout_seconds ({kafka.round_timeout_seconds:g}): one silent broker takes "
        "a whole round": kafka.request_timeout_seconds >= kafka.round_timeout_seconds,
        f"{credentials} set, and not used by {kafka.security_protocol}: "
        "kafka.security_protocol would have to be SASL_SSL or SASL_PLAINTEXT": (
            bool(credentials) and not kafka.security_protocol.startswith("SASL")
        ),
        f"http.host {settings.http.host} is open to other machines: what is sent is not "
        "encrypted, tokens included": is_open,
        f"http.token is not set while http.host {settings.http.host} is open to other machines: "
        "requests need a token of the database (`tidemark token create`), and while the database "
        "is away one that was not used before is rejected": is_open and settings.http.token is None,
        "scrapes: a token or password is sent to an address with http:// on another machine: it is "
        "not encrypted": _sends_openly(scrapes),
        "scrapes.target_files: a token or password is sent to every target they list, and without "
        "the label __scheme__: https it is not encrypted": bool(parted(scrapes.target_files))
        and (scrapes.bearer_token or scrapes.password) is not None,
        "alerting.receivers are set, and neither alerting.default_receiver nor a route names one: "
        "nobody is notified of alerts": alerting.is_set
        and alerting.default_receiver is None
        and not alerting.routes,
        "alerting.routes: one takes only rules of severity info, and is sent nothing: its "
        "matchers would have to name severity, or its receiver have send_info = true": (
            any(map(_is_in_vain, alerting.routing().routes))
        ),
        "alerting.receivers: notifications and their secrets are sent to an address with http:// on "
        "another machine: they are not encrypted": _notifies_openly(alerting),
    }
    return [message for message, holds in odd.items() if holds]


def is_loopback(http: HttpSettings) -> bool:
    """Return whether only this machine can connect; a name that we do not know may be open."""
    return _is_own(http.host)


def _is_own(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _sends_openly(scrapes: ScrapeSettings) -> bool:
    secrets = {
        EndpointKind.PAGE: scrapes.bearer_token or scrapes.password,
        EndpointKind.PROMETHEUS: scrapes.prometheus_bearer_token or scrapes.prometheus_password,
    }
    urls = [urlsplit(endpoint.url) for endpoint in scrapes.endpoints() if secrets[endpoint.kind]]
    return any(url.scheme == "http" and not _is_own(url.hostname or "") for url in urls)


def _is_in_vain(route: Route) -> bool:
    """Whether a route names only rules of severity info, and neither it nor its receiver opts in to that."""
    named = tuple(matcher for matcher in route.matchers if matcher.name == ALERTNAME)
    severities = {
        rule.meta.severity
        for rule in RULES
        if named and all_match(named, {ALERTNAME: rule.meta.rule_id})
    }
    return severities == {Severity.INFO} and not route.asks_for_info


def _notifies_openly(alerting: AlertingSettings) -> bool:
    urls = [receiver.endpoint for receiver in alerting.receivers_by_name().values()]
    return any(url.scheme == "http" and not _is_own(url.host) for url in urls)
