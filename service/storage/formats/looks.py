"""The last look at each partition as named arrays."""

from __future__ import annotations

from typing import Final

from rules.facts.column import Column
from rules.facts.last_look import LastLooks
from rules.facts.look_context import LookContext
from rules.facts.partitions import Partitions
from rules.facts.standing import Standing
from service.storage.formats.arrays import (
    Arrays,
    put_column,
    put_lists,
    put_standing,
    read_column,
    read_lists,
    read_standing,
)

LEADER: Final = "look.leader"
LOG_START: Final = "look.log_start_offset"
CONTEXT: Final = "look.context"  # absent in older checkpoints, as are those two
CHANGED: Final = ("leaderless_epoch", "succeeded_us", "was_in_sync")
UNCLEAN: Final = "unclean_election_enabled"


def put_looks(into: Arrays, looks: LastLooks) -> None:
    """Put the last looks, and what is kept with them."""
    base = looks.high_watermark
    put_column(into, LEADER, looks.leader)
    put_column(into, "look.leader_epoch", looks.leader_epoch)
    put_column(into, LOG_START, looks.log_start_offset, base)
    put_column(into, "look.high_watermark", base)
    put_column(into, "look.last_stable_offset", looks.last_stable_offset, base)
    put_column(into, "look.log_end_offset", looks.log_end_offset, base)
    put_column(into, "look.looked_at_us", looks.looked_at_us)
    put_lists(into, "look.isr", looks.isr)
    put_lists(into, "look.elr", looks.elr)
    context = looks.context
    put_standing(into, CONTEXT, context.high_watermark, base)
    put_lists(into, f"{CONTEXT}.replicas", context.replicas)
    put_column(into, f"{CONTEXT}.{UNCLEAN}", context.unclean_election_enabled)
    put_column(into, f"{CONTEXT}.isr_told_us", context.isr_told_us, looks.looked_at_us)
    for name in CHANGED:
        put_column(into, f"{CONTEXT}.{name}", getattr(context, name))
    put_lists(into, f"{CONTEXT}.electable", context.electable)


def _context(
    arrays: Arrays, partitions: Partitions, base: Column, looked_at: Column
) -> LookContext:
    rows = len(partitions)
    return LookContext(
        high_watermark=read_standing(arrays, CONTEXT, rows, base),
        replicas=read_lists(arrays, f"{CONTEXT}.replicas", rows),
        unclean_election_enabled=read_column(arrays, f"{CONTEXT}.{UNCLEAN}", rows),
        isr_told_us=read_column(arrays, f"{CONTEXT}.isr_told_us", rows, looked_at),
        electable=read_lists(arrays, f"{CONTEXT}.electable", rows),
        **{name: read_column(arrays, f"{CONTEXT}.{name}", rows) for name in CHANGED},
    )


def read_looks(arrays: Arrays, partitions: Partitions, stood: Standing) -> LastLooks:
    """Return the last looks; older checkpoints keep nothing with them, and `stood` counts."""
    rows = len(partitions)
    base = read_column(arrays, "look.high_watermark", rows)
    looked_at = read_column(arrays, "look.looked_at_us", rows)
    return LastLooks(
        partitions=partitions,
        leader=read_column(arrays, LEADER, rows) if LEADER in arrays else Column.absent(rows),
        leader_epoch=read_column(arrays, "look.leader_epoch", rows),
        log_start_offset=read_column(arrays, LOG_START, rows, base)
        if LOG_START in arrays
        else Column.absent(rows),
        last_stable_offset=read_column(arrays, "look.last_stable_offset", rows, base),
        high_watermark=base,
        log_end_offset=read_column(arrays, "look.log_end_offset", rows, base),
        isr=read_lists(arrays, "look.isr", rows),
        elr=read_lists(arrays, "look.elr", rows),
        looked_at_us=looked_at,
        context=_context(arrays, partitions, base, looked_at)
        if f"{CONTEXT}.replicas" in arrays
        else LookContext.of(partitions, stood, Column.absent(rows)),
    )
