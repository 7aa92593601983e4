"""Takeovers of transactional ids, and the transactions that were cut: by the log and by lines alike."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from rules.facts.column import replace_fields
from rules.facts.fencing import (
    KEPT_CUTS,
    KEPT_TAKEOVERS,
    CutTransaction,
    FencingEpisode,
    Takeover,
    in_order,
    key_of,
)
from rules.facts.last_observation import microseconds
from rules.facts.times import MICROSECOND
from rules.facts.transaction_log import Cut, EndedTransaction, Initialisation
from rules.fencing.gathered import Gathered

# A client that fenced an open transaction initialises again every 100 ms to 1 s until its markers are there.
INITIALISED_AT_ONCE: Final = timedelta(seconds=3)
# A coordinator's line and its record of one abort are written together.
SAME_ABORT: Final = timedelta(seconds=5)
_AT_ONCE_US: Final = INITIALISED_AT_ONCE // MICROSECOND
_SAME_US: Final = SAME_ABORT // MICROSECOND
_MILLISECOND: Final = timedelta(milliseconds=1)


def add_cut(gathered: Gathered, ended: EndedTransaction) -> None:
    """Add a transaction that was cut; the coordinator's line about it may have been there before."""
    if ended.cut is None:
        return
    cut = CutTransaction(
        cut=ended.cut,
        producer_id=ended.producer_id,
        producer_epoch=ended.producer_epoch,
        started_us=microseconds(ended.started_at),
        ended_us=microseconds(ended.ended_at),
        timeout_ms=ended.timeout // _MILLISECOND,
    )
    episode = gathered.add(ended.transactional_id, None)
    others = tuple(each for each in episode.cuts if not is_same_cut(each, cut))
    gathered.put(
        episode,
        cuts=with_cut(replace_fields(episode, cuts=others), cut),
        cut_count=episode.cut_count + (len(others) == len(episode.cuts)),
        producer_id=ended.producer_id,
    )


def is_same_cut(first: CutTransaction, second: CutTransaction) -> bool:
    """Whether two sources are about the same abort: a coordinator's line and its record."""
    if first.cut is not second.cut:
        return False
    if None not in (first.producer_epoch, second.producer_epoch):
        return first == second
    return abs(first.ended_us - second.ended_us) <= _SAME_US


def add_initialised(
    gathered: Gathered, initialised: Initialisation, *, is_line: bool = False
) -> None:
    """Add an initialisation, which is a takeover unless it is the first one of its producer id.

    By a coordinator's line alone it may be the owner's own: whether it had aborted before is not in it.
    """
    if initialised.producer_epoch == 0:
        return  # a new id, or the epochs of the producer id were used up
    takeover = _takeover_of(gathered, initialised)
    if is_line and not takeover.is_cut:
        takeover = replace(takeover, is_own=None)
    add_takeover(gathered, initialised.transactional_id, takeover)


def _takeover_of(gathered: Gathered, initialised: Initialisation) -> Takeover:
    """Return an initialisation as a takeover, by the abort that it followed at once."""
    at, epoch = microseconds(initialised.at), initialised.producer_epoch
    takeover = Takeover(producer_id=initialised.producer_id, producer_epoch=epoch, at_us=at)
    for each in gathered.aborts_of(initialised.transactional_id):
        if each.marker_epoch == epoch - 1 and 0 <= at - each.ended_us <= _AT_ONCE_US:
            if each.marker_epoch > each.producer_epoch:  # transactions v2
                return replace(takeover, is_cut=None)
            return replace(takeover, is_own=None)
    episode = gathered.open.get(key_of(initialised.transactional_id, None))
    cuts = () if episode is None else episode.cuts
    is_cut = any(cut.cut is Cut.SECOND_INSTANCE and cut.producer_epoch == epoch - 2 for cut in cuts)
    return replace(takeover, is_cut=is_cut)


def add_takeover(gathered: Gathered, transactional_id: str, takeover: Takeover) -> None:
    """Add a takeover, or what another source says of the same one."""
    episode = gathered.add(transactional_id, None)
    same = next((each for each in episode.takeovers if each.key == takeover.key), None)
    if same is not None:
        joined = _join_takeovers(same, takeover)
        takeovers = tuple(joined if each is same else each for each in episode.takeovers)
        gathered.put(episode, takeovers=takeovers)
        return
    gathered.put(
        episode,
        takeovers=with_takeover(episode, takeover),
        takeover_count=episode.takeover_count + 1,
        producer_id=takeover.producer_id,
    )


def _join_takeovers(first: Takeover, second: Takeover) -> Takeover:
    """Return what the log, a line and the request log say of one initialisation."""
    is_cuts = [each.is_cut for each in (first, second)]
    return replace(
        second,
        at_us=min(first.at_us, second.at_us),
        is_cut=True if True in is_cuts else (None if None in is_cuts else False),
        is_own=True if first.is_own or second.is_own else _either(first, second),
        instance=second.instance or first.instance,
    )


def _either(first: Takeover, second: Takeover) -> bool | None:
    """Return whether it is another's: the request log, or a record that follows no abort, says so."""
    return False if False in (first.is_own, second.is_own) else None


def with_takeover(episode: FencingEpisode, takeover: Takeover) -> tuple[Takeover, ...]:
    """Return the takeovers of an episode with one more, the newest of them."""
    return in_order((*episode.takeovers, takeover))[-KEPT_TAKEOVERS:]


def with_cut(episode: FencingEpisode, cut: CutTransaction) -> tuple[CutTransaction, ...]:
    """Return the cut transactions of an episode with one more, the latest of them."""
    return tuple(sorted((*episode.cuts, cut), key=lambda each: each.ended_us))[-KEPT_CUTS:]
