"""The memory of losses as plain values for JSON.

Transactions that may be missing are not stored: recently committed ones are not stored either, so a
restart could not continue with them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple

from rules.facts.first_epochs import FirstEpoch
from rules.facts.incidents import Incident
from rules.facts.loss_memory import CommitFact, LossMemory, ReplicaEvent, ReplicaLine, ReportedLoss
from rules.facts.unseen_elections import NewTopic, UnseenElection
from service.storage.formats import log as log_format
from service.storage.formats.log import ParsedLines
from service.storage.formats.values import plain, read

NO_LINES: Final = ParsedLines(events=(), sources=())


class _Losses(NamedTuple):
    """What is stored, in this order; older checkpoints have the first 2, 5 or 7 parts."""

    beyond_epoch_end: frozenset[CommitFact]
    beyond_log_end: frozenset[CommitFact]
    reported: tuple[ReportedLoss, ...] = ()
    # Format and content of the log lines, and when each was read.
    lines: tuple[int, str, tuple[int, ...]] = (log_format.FORMAT, log_format.encode(NO_LINES), ())
    quiet: tuple[ReportedLoss, ...] = ()
    unseen: tuple[UnseenElection, ...] = ()
    new_topics: tuple[NewTopic, ...] = ()
    incidents: tuple[Incident, ...] = ()


class _Election(NamedTuple):
    """The election fields of a reported loss, stored apart, so that older versions ignore them."""

    not_known_to: int | None
    contradicted: int


def plain_losses(memory: LossMemory) -> list[Any]:
    """Return the memory as JSON values."""
    lines = ParsedLines(events=tuple(line.event for line in memory.lines), sources=())
    times = tuple(line.read_us for line in memory.lines)
    losses = _Losses(
        beyond_epoch_end=memory.beyond_epoch_end,
        beyond_log_end=memory.beyond_log_end,
        reported=memory.reported,
        lines=(log_format.FORMAT, log_format.encode(lines), times),
        quiet=memory.quiet,
        unseen=memory.unseen,
        new_topics=memory.new_topics,
        incidents=memory.incidents,
    )
    return list(plain(losses))


def losses_of(stored: Any) -> LossMemory:
    """Read the memory that `plain_losses` returned.

    Raises:
        StoreError: the log lines have another format.
        LookupError, TypeError, ValueError: the values are malformed.
    """
    if len(stored) not in (2, 5, 7, 8):
        raise ValueError("losses with other parts")
    losses = read(_Losses, stored)
    form, content, times = losses.lines
    lines = []
    for event, read_us in zip(log_format.decode(content, form).events, times, strict=True):
        if not isinstance(event, ReplicaEvent):
            raise TypeError("a line that settles no loss")
        lines.append(ReplicaLine(event=event, read_us=read_us))
    return LossMemory(**{**losses._asdict(), "lines": tuple(lines)})


def plain_first_epochs(memory: LossMemory) -> list[Any]:
    """Return the first observations of new partitions, apart, so that older versions ignore them."""
    return list(plain(memory.first_epochs))


def with_first_epochs(memory: LossMemory, stored: Any) -> LossMemory:
    """Return the memory with the values that `plain_first_epochs` returned."""
    return replace(memory, first_epochs=read(tuple[FirstEpoch, ...], stored))


def plain_elections(memory: LossMemory) -> list[Any]:
    """Return the election fields of the reported losses, in their order."""
    return [[loss.not_known_to, loss.contradicted] for loss in memory.reported]


def with_elections(memory: LossMemory, stored: Any) -> LossMemory:
    """Return the memory with the values that `plain_elections` returned."""
    elections = read(tuple[_Election, ...], stored)
    reported = zip(memory.reported, elections, strict=True)
    return replace(
        memory, reported=tuple(replace(loss, **election._asdict()) for loss, election in reported)
    )
