"""An observation with episodes of sequences, made by the rounds that would find them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from starlette.testclient import TestClient

from rules.facts.broker_log import BrokerLog
from rules.facts.episodes import Episode, SequenceMemory
from rules.view import View
from tests.unit.rules.sequence.case_observations import ALONE, line_of_2
from tests.unit.rules.sequence.lines import rejected
from tests.unit.rules.sequence.stage import Observation, batch, found, play
from tests.unit.service.api.given import client_of

OLD_BATCH: Final = batch(97, 0, 3)  # sequences 0 to 2, of leader epoch 5
# Broker 1 alone has [100, 124); broker 2 becomes leader without them, and rejects sequence 27.
LOSS: Final = (
    Observation(second=0, isr=(1,), end=124),
    Observation(
        second=11,
        leader=2,
        epoch=6,
        isr=(2,),
        ends=((0, 5, 100),),
        lines=(rejected(27, 2, broker=2), rejected(27, 2, broker=2, second=10.5)),
    ),
    Observation(second=12, leader=2, epoch=6, isr=(2,), found=[found(OLD_BATCH)]),
)
# The leader stayed, and its log has the last sequence: only the order was wrong.
REORDERING: Final = (
    Observation(second=0),
    Observation(second=11, lines=(rejected(6, 2),)),
    Observation(second=12, found=[found(OLD_BATCH, batch(100, 3, 3), batch(103, 6, 3))]),
)
SUSPECTED: Final = (ALONE, line_of_2())
INVESTIGATED: Final = (Observation(second=0), Observation(second=11, lines=(rejected(27, 2),)))


def after(*observations: Observation) -> View:
    """Return what the rules are given after these rounds."""
    return play(observations)[-1]


def episode_of(*observations: Observation, **overrides: Any) -> Episode:
    """Return the only episode after these rounds."""
    (episode,) = after(*observations).memory.sequences.episodes
    return replace(episode, **overrides)


def holding(view: View, episodes: Iterable[Episode]) -> View:
    """Return the view with these episodes instead of its own."""
    known = list(episodes)
    memory = SequenceMemory(
        open={(one.name, one.producer_id): one for one in known if one.ended_us is None},
        ended=tuple(one for one in known if one.ended_us is not None),
    )
    return replace(view, memory=replace(view.memory, sequences=memory))


def client_for(view: View, *, is_read: bool = True, **overrides: Any) -> TestClient:
    """Return a client of a service whose last round this was."""
    log = view.snapshot.broker_log if is_read else BrokerLog.unread()
    seen = replace(view.snapshot, broker_log=log)
    return client_of(snapshot=seen, view=replace(view, snapshot=seen), at=view.now, **overrides)
