"""The rounds that `tidemark tx` makes: as few as it takes to say who holds back what.

One round shows what coordinators list and which offsets are held; who holds them is asked in the
next one, and that nobody will ever end it is confirmed by the one after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from rules.facts.memory import Memory, advance
from rules.question import ProducersQuestion
from rules.transactions.hold_up import Doubt, hold_ups
from rules.view import View
from service.rounds import Scope
from service.watch import SnapshotSource

AT_ONCE: Final = 4  # rounds at most, one right after the other
NEEDED: Final = 3  # rounds that confirm what hangs: held, seen unlisted, seen so again
AT_MOST: Final = 6  # rounds, where a coordinator moves or something new is seen meanwhile
PASSING: Final = (Doubt.CONFIRMING, Doubt.COORDINATOR_NOT_SEEN, Doubt.NOT_DESCRIBED)


class Looker:
    """Makes rounds over one cluster and remembers what they showed."""

    def __init__(self, source: SnapshotSource) -> None:
        self._source = source
        self._memory: Memory | None = None

    def look(self, *questions: ProducersQuestion) -> View:
        """Make one round."""
        snapshot = self._source.read(Scope(questions=questions))
        known = self._memory
        before = known if known and known.cluster_id == snapshot.cluster_id else None
        self._memory = advance(snapshot, before)
        return View(snapshot=snapshot, memory=self._memory, before=before, now=snapshot.taken_at)


def look_at_once(looker: Looker) -> View:
    """Return what is open now, each partition asked whose transactions these are."""
    view = looker.look()
    for _ in range(AT_ONCE - 1):
        question = _about_open(view)
        if not len(question.rows):
            break
        view = looker.look(question)
        if not _has(view, (Doubt.CONFIRMING,)):
            break
    return view


def look_for_hanging(looker: Looker, *, begin: Callable[[int, int], None]) -> View:
    """Make rounds until it is certain what hangs, or that it cannot be told.

    `begin` is called before each round with its number and how many there will be at least; it
    waits until the round is due. Only partitions that are held from round to round are asked about,
    so that a busy cluster is not burdened.
    """
    begin(1, NEEDED)
    view, number = looker.look(), 1
    while number < AT_MOST:
        number += 1
        begin(number, max(number, NEEDED))
        view = looker.look()
        if not _has(view, PASSING):
            break
    return view


def _about_open(view: View) -> ProducersQuestion:
    span = view.snapshot.offsets.open_span
    rows = np.flatnonzero(span.valid & (span.values > 0)).astype(np.int64)
    return ProducersQuestion(view.snapshot.partitions, rows)


def _has(view: View, doubts: tuple[Doubt, ...]) -> bool:
    return any(one.doubt in doubts for one in hold_ups(view))
