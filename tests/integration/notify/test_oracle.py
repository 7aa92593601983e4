"""A real Alertmanager as the oracle: of one timeline it says what Tidemark says.

Tidemark steps through the timeline by a clock of the test, tells its own webhook, and pushes the same
alerts to an Alertmanager with the same grouping, silences and inhibitions. What that one tells its
webhook must be what Tidemark told, body by body. It is asked for by conditions, never by time: in
every act a marker is pushed last and awaited. What is told although it should not be, and comes after
that, is found in the next act.

Differences that are meant, or that lie in how alerts get there:

- `notification_reason`: a field of newer Alertmanagers than Debian's.
- Told in parts: an Alertmanager takes one pushed alert after the other, and may flush in between. Of
  one act only the last body of a group is compared; those before must say no more than it does, or
  than what was told before.
- `OWED_ENDS`: an Alertmanager forgets an end that comes while its alert is silenced, and whoever was
  told that it fires waits for ever. Tidemark tells the end when the silence is over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

import pytest

from rules.verdict import Verdict
from service.alerting.alerts.evaluate import OperatorRequests, Stepped
from service.alerting.alerts.inhibition import Inhibition
from service.alerting.alerts.matchers import parse_matchers
from service.alerting.alerts.routes import Routing
from service.alerting.notifications.channels import NotificationContext, post_of
from service.alerting.receivers.receiver_url import ReceiverUrl
from service.alerting.receivers.receivers import AlertmanagerReceiver, WebhookReceiver
from service.alerting.sending.answers import Outcome
from service.runtime.clock import utc_now, wait_until
from tests.alerting import Life, Said, config, route, rule, silence
from tests.integration.notify.alertmanager import Alertmanager, alertmanager
from tests.integration.notify.receiving import Receiver, receiving
from tests.integration.notify.sending import with_sender

pytestmark = pytest.mark.integration

SECONDS: Final = 180.0
LONG: Final = 60.0  # of the timeline, from act to act
OK, BREACH = Verdict.OK, Verdict.BREACH
TEAM, PUSHED = "team", "alertmanager"
MARKER: Final = "zz_marker"  # pushed last, as keys are sorted
ADDRESS: Final = "http://am.example.org"
OURS_ALONE: Final = {"notification_reason"}
RULES: Final = tuple(rule(name) for name in ("some_rule", "other_rule", "broker_down", MARKER))
INHIBITION: Final = Inhibition(
    source=parse_matchers('alertname="broker_down"'),
    target=parse_matchers('alertname="other_rule"'),
    equal=("cluster",),
)
THEIR_INHIBITION: Final = {
    "source_matchers": ['alertname="broker_down"'],
    "target_matchers": ['alertname="other_rule"'],
    "equal": ["cluster"],
}
SILENCED: Final = ("topic", "bills")


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One round of the timeline: what it says, and who is silenced from its begin on."""

    what: str
    said: Mapping[str, Mapping[str, Said]] = field(default_factory=dict)
    is_silenced: bool = False
    ours_alone: tuple[str, ...] = ()  # rules whose groups only Tidemark tells


OWED_ENDS: Final = "an end that came under a silence is told when that is over"
TIMELINE: Final = (
    Act(what="two fire", said={"some_rule": {"orders-0": BREACH, "orders-1": BREACH}}),
    Act(what="another rule fires", said={"other_rule": {"orders-0": BREACH}}),
    Act(what="a third one joins", said={"some_rule": {"bestellungen-ä-2": BREACH}}),
    Act(what="nothing new"),
    Act(what="one ends, the others go on", said={"some_rule": {"orders-0": OK}}),
    Act(what="it fires again", said={"some_rule": {"orders-0": BREACH}}),
    Act(
        what="one ends while another begins",
        said={"some_rule": {"orders-0": OK, "orders-3": BREACH}},
    ),
    Act(
        what="one fires under a silence",
        said={"some_rule": {"bills-0": BREACH}},
        is_silenced=True,
    ),
    Act(what="the silence is over"),
    Act(
        what="it ends under another silence",
        said={"some_rule": {"bills-0": OK}},
        is_silenced=True,
    ),
    # Only with its group's next flush does an Alertmanager forget that end: this body proves the flush.
    Act(
        what="another joins its group under the silence",
        said={"some_rule": {"orders-9": BREACH}},
        is_silenced=True,
    ),
    Act(what=OWED_ENDS, ours_alone=("some_rule",)),
    Act(what="a broker is down", said={"broker_down": {"node-1": BREACH}}),
    Act(what="what it explains is not told", said={"other_rule": {"orders-5": BREACH}}),
    Act(what="the broker is back", said={"broker_down": {"node-1": OK}}),
    Act(
        what="all is over",
        said={
            "some_rule": dict.fromkeys(
                ("orders-1", "bestellungen-ä-2", "orders-3", "orders-9"), OK
            ),
            "other_rule": {"orders-0": OK, "orders-5": OK},
        },
    ),
    Act(what="nothing more"),
    Act(what="and nothing after it"),
)


class Stage:
    """Tidemark and an Alertmanager, side by side."""

    def __init__(self, server: Alertmanager, hook: Receiver) -> None:
        self.server = server
        self.hook = hook
        self.receiver = AlertmanagerReceiver(name=PUSHED, url=ReceiverUrl(server.address))
        team = WebhookReceiver(name=TEAM, url=ReceiverUrl("https://team.example.org/hook"))
        self.telling = NotificationContext(
            receivers={TEAM: team, PUSHED: self.receiver},
            rules={one.rule_id: one for one in RULES},
            external_url=ADDRESS,
        )
        pushes = route(
            PUSHED,
            group_wait=timedelta(0),
            group_interval=timedelta(seconds=LONG / 2),
            repeat_interval=timedelta(seconds=LONG / 2),
            heeds_mutes=False,
            repeats_always=True,
        )
        tells = route(
            TEAM,
            group_wait=timedelta(seconds=LONG / 4),
            group_interval=timedelta(seconds=LONG / 2),
            repeat_interval=timedelta(days=1),
        )
        settings = config(*RULES, inhibitions=(INHIBITION,))
        # Each has the default route, whose groups an Alertmanager's own default route has as well.
        self.life, self.pushing = (
            Life(replace(settings, routing=Routing(default=one))) for one in (tells, pushes)
        )
        self.silence: str | None = None
        self.acts = 0
        self.said: dict[str, dict[str, Said]] = {}  # what was said is until something else is

    def play(self, act: Act) -> tuple[dict[str, Any], list[Any]]:
        """Play an act; return our last body of each group, and all of theirs."""
        begin = len(self.hook.got)
        self._silence(is_silenced=act.is_silenced)
        seconds = LONG * self.acts
        self.acts += 1
        for rule_id, said in {**act.said, MARKER: {f"act-{self.acts}": BREACH}}.items():
            self.said.setdefault(rule_id, {}).update(said)
        ours = []
        for life in (self.pushing, self.life):
            for step in (life.rounds(seconds, self.said), life.wait(seconds + LONG - 1)):
                ours += list(self._told(step))
        expected = {one["groupKey"]: one for one in ours}
        left = {key: one for key, one in expected.items() if _rule(key) not in act.ours_alone}

        def is_reported() -> bool:
            theirs = {one["groupKey"]: one for one in self._theirs(begin)}
            return all(_same(theirs.get(key)) == _same(one) for key, one in left.items())

        arrived = wait_until(is_reported, timeout_seconds=SECONDS)
        theirs = self._theirs(begin)
        last = {one["groupKey"]: _same(one) for one in theirs}
        assert arrived, (act.what, last, {key: _same(one) for key, one in left.items()})
        return expected, theirs

    def _told(self, step: Stepped) -> Iterator[Any]:
        """Push what is for the Alertmanager; give the bodies of our own webhook."""
        for one in step.notifications:
            made = self.telling.outgoing(one, webhook_id="x")
            assert made is not None
            if one.receiver == PUSHED:
                self._push(made.body)
            else:
                yield json.loads(made.body)

    def _push(self, body: bytes) -> None:
        post = post_of(self.receiver, body, webhook_id="x", at=utc_now())
        attempt = with_sender(lambda sender: sender.send(self.receiver, post.body, post.headers))
        assert attempt.outcome is Outcome.DELIVERED, attempt

    def _theirs(self, begin: int) -> list[Any]:
        return [json.loads(one.body) for one in self.hook.got[begin:]]

    def _silence(self, *, is_silenced: bool) -> None:
        label, value = SILENCED
        if is_silenced and self.silence is None:
            self.silence = self.server.silence(label, value)
            self.life.queries = OperatorRequests(silences=[silence(f'{label}="{value}"')])
        elif not is_silenced and self.silence is not None:
            self.server.expire(self.silence)
            self.silence, self.life.queries = None, OperatorRequests()


def _same(body: Any) -> Any:
    """Return a body without what is meant to differ, and without the order of its alerts."""
    if body is None:
        return None
    left = {name: value for name, value in body.items() if name not in OURS_ALONE}
    return {**left, "alerts": sorted(body["alerts"], key=lambda one: str(one["fingerprint"]))}


def _rule(key: str) -> str:
    return next(one.rule_id for one in RULES if f'alertname="{one.rule_id}"' in key)


def _said(body: Any) -> set[tuple[str, str]]:
    """Return which alerts a body tells of, and how."""
    return {(one["fingerprint"], one["status"]) for one in body["alerts"]}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("oracle")
    with (
        receiving() as hook,
        alertmanager(folder, f"{hook.address}/hook", [THEIR_INHIBITION]) as am,
    ):
        yield Stage(am, hook)


def test_an_alertmanager_tells_of_one_timeline_what_tidemark_tells(stage: Stage) -> None:
    known: dict[str, set[tuple[str, str]]] = {}
    told: list[str] = []
    for act in TIMELINE:
        ours, theirs = stage.play(act)
        told += [f"{act.what}: {_rule(key)} {one['status']}" for key, one in ours.items()]
        for body in theirs:
            key = body["groupKey"]
            assert key in ours, (act.what, "Tidemark told nothing of", body)
            assert _rule(key) not in act.ours_alone, (act.what, body)
            assert _said(body) <= _said(ours[key]) | known.get(key, set()), (act.what, body)
        known |= {key: _said(one) for key, one in ours.items()}
        held = firing(stage.life)
        assert wait_until(
            lambda held=held: stage.server.fingerprints() == held,  # type: ignore[misc]
            timeout_seconds=SECONDS,
        ), act.what
    assert [one for one in told if MARKER not in one] == [
        "two fire: some_rule firing",
        "another rule fires: other_rule firing",
        "a third one joins: some_rule firing",
        "one ends, the others go on: some_rule firing",
        "it fires again: some_rule firing",
        "one ends while another begins: some_rule firing",
        "the silence is over: some_rule firing",
        "another joins its group under the silence: some_rule firing",
        f"{OWED_ENDS}: some_rule firing",
        "a broker is down: broker_down firing",
        "the broker is back: broker_down resolved",
        "the broker is back: other_rule firing",
        "all is over: other_rule resolved",
        "all is over: some_rule resolved",
    ]


def firing(life: Life) -> set[str]:
    """Return the fingerprints of what fires, silenced or not: all of it was pushed."""
    return {one.fingerprint for one in life.state.alerts.values() if one.resolved_at is None}
