"""A life of alerts for tests: what a rule says, round by round, through the real findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np

from rules.completeness import Completeness
from rules.evidence import Evidence
from rules.finding_table import FindingTable
from rules.judgement import Judgement, NamedSubjects, Reason
from rules.open_findings import Identity
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from service.alerting.alerts.alert import Alert, AlertState
from service.alerting.alerts.codec import (
    decode_alert,
    decode_group,
    encode_alert,
    encode_group,
)
from service.alerting.alerts.evaluate import AlertingConfig, OperatorRequests, Stepped, step
from service.alerting.alerts.grouping import AlertingState
from service.alerting.alerts.lifecycle import AlertTransition, Seen, with_latest
from service.alerting.alerts.matchers import parse_matchers
from service.alerting.alerts.routes import Route, Routing
from service.alerting.alerts.silences import Silence
from tests.factories import at, snapshot

COMPLETE: Final = Completeness.of(snapshot())
OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH
GONE: Final = None  # the subject is not among those judged
RULE: Final = "some_rule"
KEY: Final = '{}:{alertname="some_rule", cluster="default"}'


class Why(Reason):
    SAID = "said"
    MILD = "mild"  # a warning, where the rule is critical
    SHARP = "sharp"  # more is known of the same event


Said = Verdict | tuple[Verdict, Why] | tuple[Verdict, Why, Evidence] | None


def rule(rule_id: str = RULE, **overrides: Any) -> RuleMeta:
    """Return a critical rule of states that is told at once."""
    base = RuleMeta(
        rule_id=rule_id,
        subject=SubjectKind.PARTITION,
        kind=Kind.STATE,
        severity=Severity.CRITICAL,
        for_=timedelta(0),
        summary="For tests.",
        milder=((Why.MILD, Severity.WARNING),),
        sharpening=(Why.SHARP,),
    )
    return replace(base, **overrides)


def route(receiver: str = "pager", **overrides: Any) -> Route:
    """Return a route that waits for 30 s, then 5 minutes, and repeats after an hour."""
    return Route(**{"receiver": receiver, "repeat_interval": timedelta(hours=1), **overrides})


def config(*rules: RuleMeta, routes: tuple[Route, ...] = (), **overrides: Any) -> AlertingConfig:
    """Return a configuration in which everything goes to the pager."""
    base = AlertingConfig(
        rules={one.rule_id: one for one in rules or (rule(),)},
        routing=Routing(default=route(), routes=routes),
    )
    return replace(base, **overrides)


def silence(matchers: str, *, begin: float = 0, end: float = 1e6, name: str = "s1") -> Silence:
    """Return a silence between two seconds after noon."""
    return Silence(
        silence_id=name,
        matchers=parse_matchers(matchers),
        starts_at=at(begin),
        ends_at=at(end),
        created_by="on-call",
        comment="planned work",
    )


def judged(meta: RuleMeta, said: Mapping[str, Said]) -> Judgement:
    """Return what a rule says of subjects named `topic-partition`."""
    told = {name: _whole(one) for name, one in said.items() if one is not None}
    whole = list(told.values())
    reasons = tuple(Why)
    return Judgement(
        rule=meta,
        subjects=NamedSubjects(meta.subject, tuple(labels_of(name) for name in told)),
        verdicts=np.array([verdict for verdict, _, _ in whole], np.int8),
        reasons=reasons,
        reason=np.array([reasons.index(why) for _, why, _ in whole], np.int8),
        details=lambda position: whole[position][2],
    )


def labels_of(name: str) -> dict[str, str]:
    """Return the labels of a partition."""
    topic, _, partition = name.rpartition("-")
    return {"cluster": "default", "topic": topic, "partition": partition}


def identity_of(name: str, rule_id: str = RULE) -> Identity:
    """Return the identity of a partition's finding."""
    return rule_id, tuple(sorted(labels_of(name).items()))


def _whole(said: Verdict | tuple[Verdict, Why] | tuple[Verdict, Why, Evidence]) -> Whole:
    match said:
        case Verdict():
            return said, Why.SAID, {}
        case (verdict, why):
            return verdict, why, {}
        case (verdict, why, evidence):
            return verdict, why, evidence


Whole = tuple[Verdict, Why, Evidence]


class Life:
    """Rounds of one cluster, and all that was told in them."""

    def __init__(self, settings: AlertingConfig | None = None) -> None:
        self.config = settings or config()
        self.open = FindingTable()
        self.state = AlertingState()
        self.steps: list[Stepped] = []
        self.queries = OperatorRequests()

    def round(self, seconds: float, said: Mapping[str, Said], rule_id: str = RULE) -> Stepped:
        """Make a round in which one rule judged."""
        return self.rounds(seconds, {rule_id: said})

    def rounds(self, seconds: float, said: Mapping[str, Mapping[str, Said]]) -> Stepped:
        """Make a round in which these rules judged."""
        now = at(seconds)
        judgements = [judged(self.config.rules[rule_id], one) for rule_id, one in said.items()]
        before = self.open
        changes, self.open = before.advance(judgements, completeness=COMPLETE, now=now)
        return self._keep(Seen(open_findings=self.open, changes=changes, before=before), seconds)

    def wait(self, seconds: float) -> Stepped:
        """Make a step without a round."""
        return self._keep(None, seconds)

    def _keep(self, seen: Seen | None, seconds: float) -> Stepped:
        more = at(seconds), self.config, self.queries
        done = step(self.state, seen, *more, findings=self.open)
        whole = step(replace(self.state, due=None), seen, *more, findings=self.open)
        assert self._plain(done) == self._plain(whole), "only what may have changed is evaluated"
        self.state = done.state
        self.steps.append(done)
        return done

    def restart(self) -> None:
        """Have the next round evaluate every alert, as that after a restart does."""
        self.state = replace(self.state, due=None)

    def _plain(self, done: Stepped) -> tuple[object, ...]:
        """Return all that a step did, with the latest evidence."""
        alerts = {
            key: with_latest(alert, self.open.get(alert.finding))
            for key, alert in done.state.alerts.items()
        }
        others = [
            (change.step, change.alert.key)
            for change in done.changes
            if change.step is not AlertTransition.UPDATED
        ]
        return alerts, done.state.groups, sorted(others), done.notifications

    def alert(self, name: str = "orders-0", rule_id: str = RULE) -> Alert | None:
        """Return the alert of a partition that is not over, or else the one that is."""
        mine = [
            one for one in self.state.alerts.values() if one.finding == identity_of(name, rule_id)
        ]
        mine.sort(key=lambda one: one.state is AlertState.RESOLVED)
        return mine[0] if mine else None

    def reported(self) -> list[str]:
        """Return what was told so far: when, to whom, why, of whom."""
        return [
            f"{(one.at - at(0)).total_seconds():g} {one.receiver}: {one.reason}"
            f" +{_names(one.firing)} -{_names(one.resolved)}"
            for done in self.steps
            for one in done.notifications
        ]


def _names(alerts: tuple[Alert, ...]) -> str:
    return ",".join(f"{one.labels['topic']}-{one.labels['partition']}" for one in alerts)


def encode(state: AlertingState) -> dict[str, Any]:
    """Return a state as JSON has it, alert by alert and group by group."""
    return {
        "observed_at": None if state.observed_at is None else state.observed_at.isoformat(),
        "alerts": [encode_alert(alert) for alert in state.alerts.values()],
        "groups": [encode_group(group) for group in state.groups.values()],
    }


def decode(plain: Mapping[str, Any]) -> AlertingState:
    """Return the state that was encoded."""
    observed_at = plain["observed_at"]
    alerts = [decode_alert(row) for row in plain["alerts"]]
    groups = [decode_group(row) for row in plain["groups"]]
    return AlertingState(
        alerts={alert.key: alert for alert in alerts},
        groups={group.group_id: group for group in groups},
        observed_at=None if observed_at is None else datetime.fromisoformat(observed_at),
    )


def steps_of(done: Stepped) -> list[AlertTransition]:
    """Return what a step did to alerts."""
    return [change.step for change in done.changes]
