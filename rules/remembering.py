"""Makes the view of a round: the observation, what was remembered, and the memory that holds both.

Some of the memory takes conclusions, such as a proof of loss, and not only what was seen. It is put
in here, in a second step, so that the vocabulary of facts knows nothing of conclusions.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial

from rules.facts.memory import Memory, advance
from rules.facts.scrapes import reporting_producers
from rules.facts.snapshot import Snapshot
from rules.loss.incidents import with_incidents
from rules.loss.remembered import remember_losses
from rules.sequence.advance import with_sequences
from rules.view import View


def view_of_round(snapshot: Snapshot, before: Memory | None) -> View:
    """Return what the rules are given; memory of another cluster id is not `before`."""
    same = before if before is not None and before.cluster_id == snapshot.cluster_id else None
    memory = advance(snapshot, same)
    view = View(snapshot=snapshot, memory=memory, before=same, now=snapshot.taken_at)
    losses = with_incidents(view, remember_losses(view))
    view = replace(view, memory=replace(memory, losses=losses))
    return with_sequences(view, partial(only_failed, snapshot))


def only_failed(snapshot: Snapshot, topic: str, since: datetime, until: datetime) -> str | None:
    """Return the one producer of a topic whose records failed within a time, as metrics tell it.

    None where that is not known, because an endpoint was silent, or where it was not exactly one.
    """
    told = reporting_producers(snapshot.scrapes, topic, since, until)
    only = told.only_raised
    return str(only.client_id) if only is not None and told.is_whole else None
