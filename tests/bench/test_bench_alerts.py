"""One step of alerting with 10,000 findings; stats are printed.

All begin to fire, are told, go on with other evidence, are told again under 100 silences, and end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final, TypeVar

from rules.open_findings import Change, EndReason, Identity, OpenFinding, Step
from rules.verdict import Kind, Severity, Verdict
from service.alerting.alerts.annotations import annotations_of
from service.alerting.alerts.evaluate import AlertingConfig, OperatorRequests, Stepped, step
from service.alerting.alerts.grouping import AlertingState
from service.alerting.alerts.lifecycle import Seen
from service.alerting.alerts.matchers import parse_matchers
from service.alerting.alerts.routes import Routing
from tests.alerting import decode, encode, route, rule, silence
from tests.factories import at

Done = TypeVar("Done")

FINDINGS: Final = 10_000
RULES: Final = ("partition_offline", "partition_under_min_isr", "consumer_group_stalled", "other")
SILENCES: Final = [silence(f'topic="events-{number}"', name=f"s{number}") for number in range(100)]


def timed(part: str, action: Callable[[], Done]) -> Done:
    begin = time.process_time()
    done = action()
    print(f"{part:<44} {time.process_time() - begin:7.3f} s of one processor")
    return done


def findings(seconds: float) -> dict[Identity, OpenFinding]:
    """Return the open findings of a round, each with the evidence of its own time."""
    return {
        identity: OpenFinding(
            identity=identity,
            kind=Kind.STATE,
            verdict=Verdict.BREACH,
            severity=Severity.CRITICAL,
            reason="no_leader",
            evidence={"leader": None, "replicas": 3, "lag": int(seconds), "group": "billing"},
            since=at(0),
            last_breach_at=at(seconds),
            last_judged_at=at(seconds),
        )
        for identity in (_identity(number) for number in range(FINDINGS))
    }


def _identity(number: int) -> Identity:
    topic = f"a-topic-with-a-name-{number // 40}"
    labels = (("cluster", "default"), ("partition", str(number // 4 % 10)), ("topic", topic))
    return RULES[number % 4], labels


def seen(seconds: float, done: Step) -> Seen:
    """Return a round in which the same happened to all."""
    found = findings(seconds)
    is_over = done is Step.ENDED
    end = EndReason.OK if is_over else None
    after = Verdict.OK if is_over else Verdict.BREACH
    changes = [
        Change(step=done, identity=one, before=None, after=after, end_reason=end) for one in found
    ]
    return Seen(open_findings={} if is_over else found, changes=changes)


def settings() -> AlertingConfig:
    """Return four rules and five routes."""
    routes = tuple(
        route(f"team-{number}", matchers=parse_matchers(f'topic=~"team-{number}-.*"'))
        for number in range(4)
    )
    return AlertingConfig(
        rules={name: rule(name, for_=timedelta(0)) for name in RULES},
        routing=Routing(default=route(), routes=routes),
    )


class Process:
    """What a process carries from step to step."""

    def __init__(self) -> None:
        self.state = AlertingState()
        self.config = settings()

    def make(
        self, part: str, seconds: float, done: Step, asked: OperatorRequests | None = None
    ) -> Stepped:
        """Make one step and print how long it took."""
        told = seen(seconds, done)
        made = timed(
            part,
            lambda: step(self.state, told, at(seconds), self.config, asked or OperatorRequests()),
        )
        self.state = made.state
        return made


def test_ten_thousand_findings_from_the_first_breach_to_the_end() -> None:
    print()
    process = Process()
    process.make("10,000 findings open, all fire", 0, Step.OPENED)
    first = process.make("the same, all are told", 30, Step.STILL)
    told = [alert for one in first.notifications for alert in one.firing]
    timed(
        f"annotations of {len(told):,} alerts", lambda: [annotations_of(one, None) for one in told]
    )
    process.make("another round, other evidence, none due", 45, Step.STILL)
    process.make("a round that cannot judge", 60, Step.UNKNOWN)
    process.make("all due under 100 silences", 400, Step.STILL, OperatorRequests(silences=SILENCES))
    text = timed("written", lambda: json.dumps(encode(process.state)))
    print(f"{'':<44} {len(text) / 1e6:7.1f} MB")
    assert timed("read again", lambda: decode(json.loads(text))) == process.state
    process.make("all end", 415, Step.ENDED)
    last = process.make("all ends are told", 800, Step.ENDED)
    assert len(told) == sum(len(one.resolved) for one in last.notifications)
    assert told
