"""The way from a judgement to a receiver, as the service goes it, in a process that a test may kill.

Nothing is faked but what rules say and how fast time goes by: alerting, PostgreSQL, the outbox and
the network are the service's own. A process ends by itself once everything was told, or dies at a
point that a test names.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import Engine, text

from rules.catalogue.all_rules import Judged
from rules.errors import StoreError
from service.alerting.alerts.evaluate import AlertingConfig
from service.alerting.alerts.routes import Route, Routing
from service.alerting.notifications.channels import NotificationContext
from service.alerting.receivers.receiver_url import ReceiverUrl
from service.alerting.receivers.receivers import WebhookReceiver
from service.alerting.receivers.standard_webhooks import SigningSecret
from service.alerting.sending.address_guard import AddressGuard
from service.alerting.sending.calls import Calls, Reply
from service.alerting.sending.sender import Sender
from service.delivery.deliverer import Clocks, Deliverer
from service.delivery.send_states import ReceiverSendStates
from service.delivery.stats import Stats
from service.observe.watch import WatchedRound
from service.rounds.alerting_step import Alerting
from service.rounds.finding_state import FindingState
from service.rounds.persistence import RoundWriter
from service.runtime.clock import monotonic
from service.runtime.log import LineWriter, make_log
from service.runtime.supervisor import Supervisor
from service.runtime.threads import in_thread
from service.storage.database.engine import open_database
from service.storage.database.rejections import RejectedRow
from service.storage.delivery.delivered import Deliveries, Done
from service.storage.delivery.outbox import Claims, Outbox, SendCapacity
from service.storage.formats.checkpoint import Checkpoint
from service.storage.rounds.rounds import Round, Stored
from service.storage.rounds.store import PostgresStore
from tests.alerting import BREACH, OK, judged, rule
from tests.factories import CLUSTER_ID, at, snapshot

KEY_TEXT: Final = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
POINTS: Final = ("evaluated", "stored", "claimed", "sent", "completed")
ROUND_SECONDS: Final = 5.0
_NEVER: Final = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """What a process does."""

    database: str  # URL
    receiver: str  # URL
    epoch: float  # the monotonic clock, shared by all processes, at noon
    speed: float  # seconds of the play in one second
    alerts: int
    groups: int
    stop_at: str = _NEVER  # one of POINTS: the process kills itself there
    stop_on: int = 1  # the how manieth time it comes there

    def seconds(self) -> float:
        """Return the time of the play."""
        return (monotonic() - self.epoch) * self.speed

    def now(self) -> datetime:
        """Return it as the play's date."""
        return at(self.seconds())

    def said(self, number: int) -> dict[str, Any]:
        """Return what the rule says in a round: every alert lasts for four to eight rounds."""
        return {
            f"t{which % self.groups}-{which}": BREACH if begin <= number < end else OK
            for which, begin, end in map(_life, range(self.alerts))
        }

    @property
    def last(self) -> int:
        """Return a round by which every alert is over."""
        return max(end for _, _, end in map(_life, range(self.alerts))) + 1


def _life(which: int) -> tuple[int, int, int]:
    begin = 1 + which * 7 % 12
    return which, begin, begin + 4 + which % 5


class Death:
    """Kills the process, the so many-th time that it comes to a point."""

    def __init__(self, play: Play) -> None:
        self._left = play.stop_on
        self._point = play.stop_at

    def __call__(self, point: str) -> None:
        """Say where the process is."""
        if point == self._point:
            self._left -= 1
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)


class _Store(PostgresStore):
    death: Death

    def store(self, rounds: Sequence[Round]) -> Stored:
        has_news = any(one.alerts is not None and one.alerts.outgoing for one in rounds)
        if has_news:
            self.death("evaluated")
        stored = super().store(rounds)
        if has_news:
            self.death("stored")
        return stored


class _Outbox(Outbox):
    death: Death

    def claim(
        self, rooms: Sequence[SendCapacity], now: datetime, busy: Collection[int] = ()
    ) -> Claims:
        claims = super().claim(rooms, now, busy)
        if claims.claimed:
            self.death("claimed")
        return claims


class _Deliveries(Deliveries):
    death: Death

    def complete(self, done: Sequence[Done], now: datetime) -> list[RejectedRow]:
        rejected = super().complete(done, now)
        self.death("completed")
        return rejected


class _Calls(Calls):
    death: Death

    async def post(self, url: ReceiverUrl, headers: Mapping[str, str], body: bytes) -> Reply:
        reply = await super().post(url, headers, body)
        self.death("sent")
        return reply


class Chain:
    """All parts of one process."""

    def __init__(self, play: Play, engine: Callable[[], Engine], store: _Store) -> None:
        death = Death(play)
        self.play = play
        self.engine = engine
        self.stop = asyncio.Event()
        self.rule = rule()
        receiver = WebhookReceiver(
            name="pager",
            url=ReceiverUrl(play.receiver),
            signing_secrets=(SigningSecret(KEY_TEXT),),
        )
        store.death = death
        log = make_log(LineWriter(sys.stderr), as_json=True, level="error")
        supervisor = Supervisor(log, self.stop, monotonic=play.seconds)
        self.alerting = Alerting(
            AlertingConfig(rules={self.rule.rule_id: self.rule}, routing=_routing()),
            NotificationContext(receivers={"pager": receiver}, rules={}),
            new_id=lambda: str(uuid4()),
            attempt=supervisor.attempt,
        )
        self.round_writer = RoundWriter(
            store, "default", monotonic=play.seconds, waiting_rounds=1000, writer=uuid4()
        )
        self.found = FindingState(self.round_writer, self.alerting, monotonic=play.seconds)
        owner = uuid4()
        self.calls = _Calls(AddressGuard.of(["127.0.0.0/8"]))
        self.calls.death = death
        outbox, deliveries = (
            _Outbox(engine, "default", owner),
            _Deliveries(engine, "default", owner),
        )
        outbox.death = deliveries.death = death
        self.deliverer = Deliverer(
            claims=outbox,
            results=deliveries,
            sender=Sender(self.calls, utc_now=play.now, monotonic=play.seconds),
            receiver_states=ReceiverSendStates.of([(receiver, 4)]),
            stats=Stats({"pager": receiver}),
            clocks=Clocks(utc_now=play.now, monotonic=play.seconds),
            stop=self.stop,
            log=log,
            attempt=supervisor.attempt,
            poll_seconds=0.02,
        )
        self.number = 0

    async def run(self) -> None:
        """Make rounds and deliver until everything was told."""
        delivering = asyncio.create_task(self.deliverer.run())
        try:
            while not await in_thread(self._is_over):
                await in_thread(self._round)
                due = self.play.seconds() + ROUND_SECONDS
                while self.play.seconds() < due:
                    await in_thread(self.found.report_due)
                    await asyncio.sleep(0.02)
        finally:
            self.stop.set()
            await delivering
            await self.calls.aclose()

    def _round(self) -> None:
        with self.found.turn:
            loaded = self.round_writer.load()
            if loaded is not None:
                self.found.adopt(loaded)
                checkpoint = loaded.checkpoint or Checkpoint()
                self.number = max(self.number, checkpoint.unknown_since.get("round", 0))
            self.number += 1
            said = judged(self.rule, self.play.said(self.number))
            watched = WatchedRound(
                at=self.play.now(), snapshot=snapshot(), judged=Judged(judgements=[said])
            )
            self.found.keep(watched, Checkpoint(unknown_since={"round": self.number}))

    def _is_over(self) -> bool:
        """Whether every alert has ended, and everything has arrived."""
        if self.number < self.play.last or self.alerting.state(CLUSTER_ID).groups:
            return False
        if self.round_writer.status.waiting_rounds:
            return False
        try:
            with self.engine().connect() as connection:
                return not connection.execute(text(OPEN)).scalar_one()
        except (StoreError, OSError):
            return False


OPEN: Final = "SELECT count(*) FROM outbox WHERE state IN ('waiting', 'sending')"


def _routing() -> Routing:
    return Routing(
        default=Route(
            receiver="pager",
            group_by=("topic",),
            group_wait=timedelta(seconds=1),
            group_interval=timedelta(seconds=5),
            repeat_interval=timedelta(hours=1),
        )
    )


def perform(play: Play) -> None:
    """Play it in this process."""
    store = _Store(lambda: open_database(play.database, Path("/nonexistent")))

    async def run() -> None:
        await Chain(play, lambda: store.engine, store).run()

    try:
        asyncio.run(run())
    finally:
        store.close()


def written(play: Play) -> str:
    """Return a play as one line."""
    return json.dumps(asdict(play))


def serve() -> None:
    """Perform plays that come by stdin, each in a process of its own; tell its id and its end.

    Everything is imported once, so that a restart is as quick as it can be.
    """
    for line in sys.stdin:
        play = replace(Play(**json.loads(line)))
        child = os.fork()
        if child == 0:
            perform(play)
            os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
