"""Builds the view of a round: the snapshot, the previous memory, and the memory that contains both.

Some of the memory holds conclusions, such as a proof of loss, and not only observations. They are added
here, in a second step, so that the package of facts does not depend on conclusions.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial

from rules.changes.advance import with_changes
from rules.facts.memory import Memory, advance
from rules.facts.scrapes import reporting_producers
from rules.facts.snapshot import Snapshot
from rules.fencing.advance import with_fencing
from rules.loss.incidents import assign_incidents
from rules.loss.remembered import remember_losses
from rules.sequence.advance import with_sequences
from rules.sequence.record_errors import with_record_errors
from rules.suspicion.advance import with_suspicions
from rules.view import View


def view_of_round(snapshot: Snapshot, before: Memory | None) -> View:
    """Return the input of the rules; memory of another cluster id is ignored."""
    same = before if before is not None and before.cluster_id == snapshot.cluster_id else None
    memory = advance(snapshot, same)
    view = View(snapshot=snapshot, memory=memory, before=same, now=snapshot.taken_at)
    losses = assign_incidents(view, remember_losses(view))
    view = replace(view, memory=replace(memory, losses=losses))
    remembered = with_record_errors(with_sequences(view, partial(only_failed, snapshot)))
    return with_changes(with_suspicions(with_fencing(remembered)))


def only_failed(snapshot: Snapshot, topic: str, since: datetime, until: datetime) -> str | None:
    """Return the only producer of a topic whose records failed within a time, from its metrics.

    None where that is not known, because an endpoint did not answer, or where it was not exactly one.
    """
    producers = reporting_producers(snapshot.scrapes, topic, since, until)
    only = producers.only_raised
    return str(only.client_id) if only is not None and producers.is_whole else None
