"""Laws of alerting, over any life of a few subjects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from rules.verdict import Kind
from service.alerting.alerts.alert import Alert, AlertState
from service.alerting.alerts.dedup import NotifyReason
from service.alerting.alerts.evaluate import AlertingConfig, OperatorRequests, step
from service.alerting.alerts.flush import GroupNotification
from service.alerting.alerts.identity import fingerprint
from service.alerting.alerts.lifecycle import AlertTransition, Seen
from service.alerting.alerts.routes import Route, Routing
from service.alerting.alerts.silences import Silence
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
    decode,
    encode,
    route,
    rule,
)
from tests.alerting import silence as silence_of
from tests.factories import at

SUBJECTS: Final = ("orders-0", "orders-1", "audit-0")
ALL: Final = 'topic=~".+"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """What a rule says, and when: ascending seconds."""

    said: Sequence[tuple[float, Mapping[str, Said]]]


def _rounds(drawn: list[tuple[int, dict[str, Said]]]) -> Rounds:
    seconds, said = 0, []
    for gap, one in drawn:
        seconds += gap
        said.append((float(seconds), one))
    return Rounds(said=said)


words: st.SearchStrategy[Said] = st.sampled_from(
    (BREACH, BREACH, BREACH, OK, UNKNOWN, GONE, (BREACH, Why.MILD), (BREACH, Why.SHARP))
)
gaps = st.sampled_from((1, 15, 15, 30, 60, 300, 900, 4000))
rounds = st.lists(
    st.tuples(gaps, st.dictionaries(st.sampled_from(SUBJECTS), words)), max_size=25
).map(_rounds)
seconds = st.sampled_from((0, 30, 60, 300))
settings_of = st.builds(
    lambda for_, keep, kind, wait, interval, repeat, group_by, send: config(
        rule(for_=timedelta(seconds=for_), kind=kind),
        routing=Routing(
            default=route(
                group_wait=timedelta(seconds=wait),
                group_interval=timedelta(seconds=interval),
                repeat_interval=timedelta(seconds=repeat),
                group_by=group_by,
                send_resolved=send,
            )
        ),
        keep_firing_for={RULE: timedelta(seconds=keep)},
    ),
    seconds,
    seconds,
    st.sampled_from(Kind),
    seconds,
    st.sampled_from((15, 60, 300)),
    st.sampled_from((30, 600, 3600)),
    st.sampled_from(((), ("alertname",), ("topic",), ("...",))),
    st.sampled_from((True, True, False)),
)
silences = st.lists(
    st.builds(
        lambda text, begin, length: silence_of(text, begin=begin, end=begin + length),
        st.sampled_from(
            (ALL, 'topic="orders"', 'severity="warning"', 'topic=~".+",partition!="0"')
        ),
        st.integers(0, 3000),
        st.sampled_from((30, 600, 10_000)),
    ),
    max_size=3,
)


def lived(settings: AlertingConfig, rounds: Rounds, silences: Sequence[Silence] = ()) -> Life:
    """Return a life after these rounds."""
    life = Life(settings)
    life.queries = OperatorRequests(silences=silences)
    for timestamp, said in rounds.said:
        life.round(timestamp, said)
    return life


def told(life: Life) -> Iterator[GroupNotification]:
    """Give all that was told, in order."""
    for done in life.steps:
        yield from done.notifications


def last_of(rounds: Rounds) -> float:
    """Return when the last round was."""
    return rounds.said[-1][0] if rounds.said else 0


@given(settings_of, rounds)
def test_nothing_fires_before_its_for(settings: AlertingConfig, rounds: Rounds) -> None:
    life = lived(settings, rounds)
    for (timestamp, _), done in zip(rounds.said, life.steps, strict=True):
        for change in done.changes:
            if change.step is AlertTransition.FIRED:
                assert at(timestamp) - change.alert.active_at >= settings.rules[RULE].for_
                assert not list(_ends(settings, rounds, change.alert, timestamp))


def _ends(settings: AlertingConfig, rounds: Rounds, alert: Alert, until: float) -> Iterator[float]:
    """Give when the breach that an alert is about was over, though it is said to have lasted."""
    if settings.rules[RULE].kind is Kind.EVENT or settings.keep_firing_for[RULE]:
        return  # neither ends with one OK
    name = f"{alert.labels['topic']}-{alert.labels['partition']}"
    for timestamp, said in rounds.said:
        if alert.active_at <= at(timestamp) <= at(until) and said.get(name) is OK:
            yield timestamp


def default_of(settings: AlertingConfig) -> Route:
    assert settings.routing.default is not None
    return settings.routing.default


@given(settings_of, rounds, silences)
def test_there_is_one_notice_per_repeat_interval(
    settings: AlertingConfig, rounds: Rounds, silences: list[Silence]
) -> None:
    repeat = default_of(settings).repeat_interval
    last: dict[str, datetime] = {}
    for one in told(lived(settings, rounds, silences)):
        if one.reason is NotifyReason.REPEAT_INTERVAL:
            assert one.at - last[one.group_key] >= repeat
        last[one.group_key] = one.at


@given(settings_of, rounds)
def test_groups_keep_their_distance(settings: AlertingConfig, rounds: Rounds) -> None:
    last: dict[str, datetime] = {}
    ended: dict[str, bool] = {}
    for one in told(lived(settings, rounds)):
        if one.group_key in last and not ended[one.group_key]:
            interval = default_of(settings).group_interval
            assert one.reason is NotifyReason.FIRST_NOTIFICATION or (
                one.at - last[one.group_key] >= interval
            )
        last[one.group_key], ended[one.group_key] = one.at, not one.firing


@given(settings_of, rounds)
def test_a_silenced_group_never_notifies(settings: AlertingConfig, rounds: Rounds) -> None:
    assert not list(told(lived(settings, rounds, [silence_of(ALL)])))


@given(settings_of, rounds, silences)
def test_what_is_muted_is_in_no_notification(
    settings: AlertingConfig, rounds: Rounds, silences: list[Silence]
) -> None:
    for one in told(lived(settings, rounds, silences)):
        for alert in (*one.firing, *one.resolved):
            assert not any(silence.mutes(alert.labels, one.at) for silence in silences)


@given(settings_of, rounds, silences)
def test_an_end_is_told_once_and_only_of_what_was_told(
    settings: AlertingConfig, rounds: Rounds, silences: list[Silence]
) -> None:
    known: set[str] = set()
    for one in told(lived(settings, rounds, silences)):
        ends = {alert.fingerprint for alert in one.resolved}
        assert ends <= known
        assert not ends & {alert.fingerprint for alert in one.firing}
        known = (known - ends) | {alert.fingerprint for alert in one.firing}


@given(settings_of, rounds)
def test_receivers_end_up_knowing_what_fires(settings: AlertingConfig, rounds: Rounds) -> None:
    default = replace(default_of(settings), send_resolved=True)
    life = lived(replace(settings, routing=Routing(default=default)), rounds)
    end = last_of(rounds)
    for later in (400, 800):  # beyond every wait and interval
        life.wait(end + later)
    known: set[str] = set()
    for one in told(life):
        known -= {alert.fingerprint for alert in one.resolved}
        known |= {alert.fingerprint for alert in one.firing}
    firing = {
        one.fingerprint for one in life.state.alerts.values() if one.state is AlertState.FIRING
    }
    assert known == firing


@given(settings_of, rounds, silences)
def test_the_order_of_findings_is_irrelevant(
    settings: AlertingConfig, rounds: Rounds, silences: list[Silence]
) -> None:
    turned = Rounds(
        said=[(timestamp, dict(reversed(list(said.items())))) for timestamp, said in rounds.said]
    )
    one, other = lived(settings, rounds, silences), lived(settings, turned, silences[::-1])
    assert one.state == other.state
    assert list(told(one)) == list(told(other))


@given(settings_of, rounds)
def test_the_order_of_what_is_open_is_irrelevant(settings: AlertingConfig, rounds: Rounds) -> None:
    life = lived(settings, rounds)
    now = at(10_000_000)
    turned = replace(
        life.state,
        alerts=dict(reversed(list(life.state.alerts.items()))),
        groups=dict(reversed(list(life.state.groups.items()))),
    )
    seen = Seen(open_findings=life.open, changes=())
    back = Seen(open_findings=dict(reversed(list(life.open.items()))), changes=())
    one = step(life.state, seen, now, settings)
    other = step(turned, back, now, settings)
    assert (one.state, one.notifications) == (other.state, other.notifications)


@given(settings_of, rounds)
def test_not_knowing_changes_no_state(settings: AlertingConfig, rounds: Rounds) -> None:
    settings = replace(settings, rules={RULE: replace(settings.rules[RULE], kind=Kind.STATE)})
    life = lived(settings, rounds)
    before = {
        one.key: one
        for one in life.state.alerts.values()
        if one.finding in life.open and one.state is not AlertState.RESOLVED
    }
    done = life.round(last_of(rounds) + 15, dict.fromkeys(SUBJECTS, UNKNOWN))
    assert {key: done.state.alerts[key] for key in before} == before
    assert not {one.alert.key for one in done.changes} & before.keys()


@given(settings_of, rounds, silences)
def test_a_restart_is_not_noticed(
    settings: AlertingConfig, rounds: Rounds, silences: list[Silence]
) -> None:
    life, other = Life(settings), lived(settings, rounds, silences)
    life.queries = OperatorRequests(silences=silences)
    for timestamp, said in rounds.said:
        life.round(timestamp, said)
        restored = decode(json.loads(json.dumps(encode(life.state))))
        assert restored == life.state
        life.state = restored
    assert list(told(life)) == list(told(other))


@given(settings_of, rounds)
def test_a_step_without_anything_new_tells_nothing_more(
    settings: AlertingConfig, rounds: Rounds
) -> None:
    life = lived(settings, rounds)
    before = life.state
    done = life.wait(last_of(rounds))
    assert (done.state, done.notifications) == (before, ())


@given(st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=5))
def test_fingerprints_are_those_of_the_plain_definition(labels: dict[str, str]) -> None:
    state = 0xCBF29CE484222325
    for name, value in sorted(labels.items()):
        for byte in name.encode() + b"\xff" + value.encode() + b"\xff":
            state = (state ^ byte) * 0x100000001B3 % 2**64
    assert fingerprint(labels) == f"{state:016x}"
