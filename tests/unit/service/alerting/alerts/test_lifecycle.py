"""The life of an alert: Prometheus' table of one evaluation, and what only our findings have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

import pytest

from rules.open_findings import Change, EndReason, Step
from rules.verdict import Kind, Severity
from service.alerting.alerts.alert import AlertEnd, AlertState, News
from service.alerting.alerts.evaluate import AlertingConfig, step
from service.alerting.alerts.grouping import AlertingState
from service.alerting.alerts.lifecycle import AlertTransition, Seen
from tests.alerting import (
    BREACH,
    GONE,
    OK,
    RULE,
    UNKNOWN,
    Life,
    Said,
    Why,
    config,
    identity_of,
    rule,
    steps_of,
)
from tests.factories import at

PENDING, FIRING, RESOLVED = AlertState.PENDING, AlertState.FIRING, AlertState.RESOLVED
MILD: Final = (BREACH, Why.MILD)
SHARP: Final = (BREACH, Why.SHARP)
MINUTE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    id: str
    why: str
    said: Mapping[float, Said]  # second -> what the rule says of the one subject
    for_: float = 60
    keep: float = 0
    kind: Kind = Kind.STATE
    state: AlertState | None  # after the last round; None: there is no alert
    end: AlertEnd | None = None
    times: Mapping[str, float | None] = field(default_factory=dict)


# Every 30 seconds unless the case is about another time.
PROMETHEUS: Final = (
    Case(id="new", why="pending since the first evaluation", said={0: BREACH}, state=PENDING, times={"active_at": 0, "fired_at": None}),
    Case(id="no-for", why="fires in the same evaluation", for_=0, said={0: BREACH}, state=FIRING, times={"active_at": 0, "fired_at": 0}),
    Case(id="before-for", why="it has not lasted", said={0: BREACH, 59: BREACH}, state=PENDING),
    Case(id="at-for", why="as long as `for` is enough", said={0: BREACH, 60: BREACH}, state=FIRING, times={"active_at": 0, "fired_at": 60}),
    Case(id="between", why="nothing happens between evaluations", said={0: BREACH, 90: BREACH}, state=FIRING, times={"fired_at": 90}),
    Case(id="pending-over", why="nobody was told", said={0: BREACH, 30: OK}, state=None),
    Case(id="pending-anew", why="a new one waits again", said={0: BREACH, 30: OK, 60: BREACH, 90: BREACH}, state=PENDING, times={"active_at": 60}),
    Case(id="resolved", why="over, and kept", for_=0, said={0: BREACH, 30: OK}, state=RESOLVED, end=AlertEnd.OK, times={"resolved_at": 30}),
    Case(id="kept-15-min", why="so that the end can be told again", for_=0, said={0: BREACH, 30: OK, 930: OK}, state=RESOLVED, end=AlertEnd.OK),
    Case(id="forgotten", why="after that it is no alert", for_=0, said={0: BREACH, 30: OK, 931: OK}, state=None),
    Case(id="back", why="a new alert, through `for` again", said={0: BREACH, 60: BREACH, 90: OK, 120: BREACH}, state=PENDING, times={"active_at": 120, "resolved_at": None}),
    Case(id="back-firing", why="a new start", for_=0, said={0: BREACH, 30: OK, 60: BREACH}, state=FIRING, times={"active_at": 60, "fired_at": 60}),
    Case(id="kept-firing", why="the clock starts at the first miss", for_=0, keep=60, said={0: BREACH, 30: OK, 89: OK}, state=FIRING, end=AlertEnd.OK, times={"keep_firing_since": 30}),
    Case(id="kept-no-more", why="the time is over", for_=0, keep=60, said={0: BREACH, 30: OK, 90: OK}, state=RESOLVED, end=AlertEnd.OK, times={"resolved_at": 90, "keep_firing_since": None}),
    Case(id="kept-and-back", why="the clock is cleared, the alert is the same", for_=0, keep=60, said={0: BREACH, 30: OK, 60: BREACH}, state=FIRING, times={"active_at": 0, "fired_at": 0, "keep_firing_since": None}),
    Case(id="kept-twice", why="each miss has a time of its own", for_=0, keep=60, said={0: BREACH, 30: OK, 60: BREACH, 80: OK, 139: OK}, state=FIRING, end=AlertEnd.OK, times={"keep_firing_since": 80}),
    Case(id="pending-not-kept", why="only what fires is kept", keep=60, said={0: BREACH, 30: OK}, state=None),
)  # fmt: skip
OURS: Final = (
    Case(id="unknown-new", why="not knowing opens nothing", said={0: UNKNOWN}, state=None),
    Case(id="unknown-pending", why="a round that cannot judge promotes nothing", said={0: BREACH, 90: UNKNOWN}, state=PENDING),
    Case(id="unknown-then-breach", why="it counts from the first breach", said={0: BREACH, 30: UNKNOWN, 60: BREACH}, state=FIRING, times={"active_at": 0}),
    Case(id="unknown-firing", why="not knowing resolves nothing", for_=0, said={0: BREACH, 30: UNKNOWN, 7200: UNKNOWN}, state=FIRING),
    Case(id="unknown-not-kept", why="not knowing is no miss", for_=0, keep=60, said={0: BREACH, 30: UNKNOWN, 60: UNKNOWN}, state=FIRING, times={"keep_firing_since": None}),
    Case(id="absent-once", why="one answer proves nothing", for_=0, said={0: BREACH, 30: GONE}, state=FIRING),
    Case(id="absent-pending", why="nor does it promote", said={0: BREACH, 60: GONE}, state=PENDING),
    Case(id="gone", why="two do", for_=0, said={0: BREACH, 30: GONE, 60: GONE}, state=RESOLVED, end=AlertEnd.SUBJECT_GONE),
    Case(id="gone-not-kept", why="what is deleted does not come back", for_=0, keep=600, said={0: BREACH, 30: GONE, 60: GONE}, state=RESOLVED, end=AlertEnd.SUBJECT_GONE),
    Case(id="event", why="it happened", for_=0, kind=Kind.EVENT, said={0: BREACH, 30: OK, 60: UNKNOWN}, state=FIRING),
    Case(id="event-waits", why="what happened is, whatever can be seen", kind=Kind.EVENT, said={0: BREACH, 60: UNKNOWN}, state=FIRING),
    Case(id="event-expires", why="a day later", for_=0, kind=Kind.EVENT, said={0: BREACH, 86400: OK}, state=RESOLVED, end=AlertEnd.EXPIRED),
)  # fmt: skip


@pytest.mark.parametrize("case", [*PROMETHEUS, *OURS], ids=lambda case: case.id)
def test_an_alert_after_its_rounds(case: Case) -> None:
    life = Life(
        config(
            rule(for_=timedelta(seconds=case.for_), kind=case.kind),
            keep_firing_for={RULE: timedelta(seconds=case.keep)},
        )
    )
    for seconds, said in case.said.items():
        life.round(seconds, {"orders-0": said})
    alert = life.alert()
    if case.state is None:
        assert alert is None
        return
    assert alert is not None
    assert (alert.state, alert.end) == (case.state, case.end)
    expected = {name: None if one is None else at(one) for name, one in case.times.items()}
    assert {name: getattr(alert, name) for name in case.times} == expected


def fired(settings: AlertingConfig | None = None) -> Life:
    life = Life(settings)
    life.round(0, {"orders-0": BREACH})
    return life


def test_another_reason_changes_the_alert() -> None:
    life = fired()
    done = life.round(30, {"orders-0": (BREACH, Why.SHARP, {"lag": 7})})
    assert steps_of(done) == [AlertTransition.UPDATED]
    alert = life.alert()
    assert alert is not None
    assert (alert.reason, alert.evidence, alert.starts_at) == ("sharp", {"lag": 7}, at(0))


def test_evidence_alone_changes_no_alert_and_is_the_newest_in_what_is_told() -> None:
    """30,000 alerts whose lag grows would otherwise be made anew in every round."""
    life = Life()
    life.round(0, {"orders-0": (BREACH, Why.SAID, {"lag": 1})})
    before = life.state.alerts
    done = life.round(15, {"orders-0": (BREACH, Why.SAID, {"lag": 7})})
    assert done.changes == []
    assert life.state.alerts is before
    (told,) = life.wait(30).notifications
    assert [dict(alert.evidence) for alert in told.firing] == [{"lag": 7}]


def test_the_evidence_of_an_ended_breach_is_that_of_its_last_round() -> None:
    life = Life()
    for seconds, lag in ((0, 1), (15, 7)):
        life.round(seconds, {"orders-0": (BREACH, Why.SAID, {"lag": lag})})
    (change,) = life.round(30, {"orders-0": (OK, Why.SAID, {"lag": 0})}).changes
    assert change.alert.evidence == {"lag": 7}


def test_what_stays_the_same_changes_nothing() -> None:
    assert fired().round(30, {"orders-0": BREACH}).changes == []


def test_evidence_of_a_round_that_cannot_judge_is_not_taken() -> None:
    life = fired()
    life.round(30, {"orders-0": (UNKNOWN, Why.MILD, {"lag": 7})})
    alert = life.alert()
    assert alert is not None
    assert (alert.reason, alert.evidence, alert.severity) == ("said", {}, Severity.CRITICAL)


def raised(life: Life, seconds: float) -> Life:
    life.config = replace(life.config, rules={RULE: rule(for_=timedelta(seconds=seconds))})
    life.restart()  # settings are read at the start alone
    return life


def test_a_raised_for_puts_an_alert_back_to_pending() -> None:
    life = raised(fired(), 60)
    done = life.round(30, {"orders-0": BREACH})
    assert steps_of(done) == [AlertTransition.RESOLVED, AlertTransition.PENDING]
    assert done.changes[0].alert.end is AlertEnd.FOR_RAISED
    alert = life.alert()
    assert alert is not None
    assert (alert.state, alert.active_at, alert.fired_at) == (PENDING, at(0), None)


def test_a_raised_for_that_has_passed_changes_nothing() -> None:
    life = raised(fired(), 30)
    assert life.round(30, {"orders-0": BREACH}).changes == []


def test_a_rule_that_was_withdrawn_waits_for_nothing() -> None:
    life = fired()
    seen = Seen(open_findings=life.open, changes=())
    done = step(life.state, seen, at(30), replace(life.config, rules={}))
    assert [one.state for one in done.state.alerts.values()] == [FIRING]


def test_another_severity_is_another_alert_of_the_same_age() -> None:
    life = Life(config(rule(for_=MINUTE)))
    life.round(0, {"orders-0": MILD})
    life.round(60, {"orders-0": MILD})
    done = life.round(90, {"orders-0": BREACH})
    assert steps_of(done) == [AlertTransition.RESOLVED, AlertTransition.FIRED]
    old, new = (change.alert for change in done.changes)
    assert (old.severity, old.end) == (Severity.WARNING, AlertEnd.SEVERITY_CHANGED)
    assert (new.severity, new.active_at, new.fired_at) == (Severity.CRITICAL, at(0), at(90))
    assert old.fingerprint != new.fingerprint


def test_a_pending_alert_of_another_severity_goes_on_waiting() -> None:
    life = Life(config(rule(for_=MINUTE)))
    life.round(0, {"orders-0": MILD})
    assert steps_of(life.round(30, {"orders-0": BREACH})) == [
        AlertTransition.DROPPED,
        AlertTransition.PENDING,
    ]
    assert steps_of(life.round(60, {"orders-0": BREACH})) == [AlertTransition.FIRED]


def test_a_severity_that_comes_back_is_a_new_alert_of_the_same_age() -> None:
    life = fired()
    life.round(30, {"orders-0": MILD})
    done = life.round(60, {"orders-0": BREACH})
    assert steps_of(done) == [AlertTransition.RESOLVED, AlertTransition.FIRED]
    assert len(life.state.alerts) == 2
    new = done.changes[1].alert
    assert (new.active_at, new.fired_at, new.end) == (at(0), at(60), None)


def test_an_alert_that_is_kept_hands_its_age_over_too() -> None:
    life = fired(config(keep_firing_for={RULE: MINUTE}))
    life.round(30, {"orders-0": OK})
    done = life.round(60, {"orders-0": MILD})
    assert steps_of(done) == [AlertTransition.RESOLVED, AlertTransition.FIRED]
    assert done.changes[1].alert.active_at == at(0)


def test_a_round_that_cannot_judge_changes_no_severity() -> None:
    life = Life()
    life.round(0, {"orders-0": MILD})
    done = life.round(30, {"orders-0": (UNKNOWN, Why.SAID)})
    assert next(iter(life.open.values())).severity is Severity.WARNING
    assert done.changes == []


def event() -> Life:
    return fired(config(rule(kind=Kind.EVENT)))


def test_an_event_that_happens_again_is_news() -> None:
    life = event()
    done = life.round(30, {"orders-0": (BREACH, Why.SAID, {"lost": 3})})
    assert steps_of(done) == [AlertTransition.AGAIN]
    assert done.changes[0].alert.news == News(occurrences=2, revisions=0)
    assert done.changes[0].alert.evidence == {"lost": 3}


def test_an_event_of_which_more_is_known_did_not_happen_again() -> None:
    life = event()
    done = life.round(30, {"orders-0": SHARP})
    assert steps_of(done) == [AlertTransition.AGAIN]
    assert done.changes[0].alert.news == News(occurrences=1, revisions=1)


def test_what_a_person_closes_is_over_at_once() -> None:
    life = fired(config(rule(kind=Kind.EVENT), keep_firing_for={RULE: timedelta(hours=1)}))
    closed = Change(
        step=Step.ENDED,
        identity=identity_of("orders-0"),
        before=BREACH,
        after=None,
        end_reason=EndReason.CLOSED,
    )
    done = step(life.state, Seen(open_findings={}, changes=[closed]), at(30), life.config)
    assert [(one.step, one.alert.end) for one in done.changes] == [
        (AlertTransition.RESOLVED, AlertEnd.CLOSED)
    ]


def test_a_finding_whose_end_never_came_here_is_over_for_no_known_reason() -> None:
    life = fired()
    life.restart()
    done = step(life.state, Seen(open_findings={}, changes=[]), at(30), life.config)
    assert [one.alert.end for one in done.changes] == [AlertEnd.NOT_SEEN]


def test_a_finding_that_was_open_before_is_an_alert_of_its_age() -> None:
    life = fired(config(rule(for_=MINUTE)))
    life.state = AlertingState()  # as after the first start with alerts
    done = life.round(60, {"orders-0": BREACH})
    assert steps_of(done) == [AlertTransition.FIRED]
    assert done.changes[0].alert.active_at == at(0)


@pytest.mark.parametrize(("back", "state"), [(3600, FIRING), (3601, PENDING)])
def test_after_a_long_outage_what_was_pending_waits_again(back: float, state: AlertState) -> None:
    life = fired(config(rule(for_=MINUTE)))
    life.round(back, {"orders-0": BREACH})
    alert = life.alert()
    assert alert is not None
    assert alert.state is state


def test_an_outage_changes_nothing_of_what_fires() -> None:
    life = fired()
    assert life.round(86_400, {"orders-0": BREACH}).changes == []


def test_a_step_of_the_clock_moves_every_time() -> None:
    life = fired(config(keep_firing_for={RULE: MINUTE}))
    life.round(30, {"orders-0": OK})
    there = life.state.shifted(timedelta(hours=1))
    here = there.shifted(timedelta(hours=-1))
    assert here == life.state
    (moved,) = there.alerts.values()
    assert (moved.active_at, moved.keep_firing_since) == (at(3600), at(3630))
    assert there.observed_at == at(3630)
