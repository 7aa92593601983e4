"""Sorts what a round observed into fencing episodes: takeovers, cut transactions, rejected requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final

from rules.facts.broker_log import (
    EpochRejected,
    Origin,
    ProducerInitialised,
    ProducerRequest,
    TransactionTimedOut,
    partition_of,
)
from rules.facts.fencing import (
    KEPT_REQUESTS,
    CutTransaction,
    FencedRequests,
    FencingClass,
    FencingEpisode,
    FencingMemory,
    FencingReason,
    FencingVerdict,
    OwnAbort,
    RejectionSource,
    Takeover,
    join_episodes,
    join_requests,
    key_of,
)
from rules.facts.last_observation import microseconds
from rules.facts.snapshot import Snapshot
from rules.facts.times import MICROSECOND
from rules.facts.transaction_log import Cut, EndedTransaction, Initialisation, Outcome
from rules.facts.transactions import IdVisibility

ID_BYTES: Final = 6
# A client that fenced an open transaction initialises again every 100 ms to 1 s until its markers are there.
INITIALISED_AT_ONCE: Final = timedelta(seconds=5)
# As long as a client may go on sending a batch (delivery.timeout.ms), and as requests wait.
ABORTS_KEPT: Final = timedelta(minutes=5)
MAX_ABORTS: Final = 5000
_AT_ONCE_US: Final = INITIALISED_AT_ONCE // MICROSECOND
_MILLISECOND: Final = timedelta(milliseconds=1)

UNJUDGED: Final = FencingVerdict(
    class_=FencingClass.UNDETERMINED, reason=FencingReason.PRODUCER_NOT_KNOWN
)


@dataclass(slots=True, kw_only=True)
class Gathered:
    """The open episodes of a round while its observations are added."""

    snapshot: Snapshot
    now_us: int
    open: dict[str, FencingEpisode]
    aborts: tuple[OwnAbort, ...]
    touched: set[str] = field(default_factory=set)  # keys with something new

    def add(self, transactional_id: str | None, producer_id: int | None) -> FencingEpisode:
        """Return the episode of an id, which is opened if there is none."""
        key = key_of(transactional_id, producer_id)
        self.touched.add(key)
        episode = self.open.get(key)
        if episode is None:
            identity = f"{self.snapshot.cluster_id}|{key}|{self.now_us}"
            episode = FencingEpisode(
                id=blake2b(identity.encode(), digest_size=ID_BYTES).hexdigest(),
                transactional_id=transactional_id,
                producer_id=producer_id,
                first_seen_us=self.now_us,
                last_seen_us=self.now_us,
                verdict=UNJUDGED,
            )
        return episode

    def put(self, episode: FencingEpisode) -> None:
        """Keep an episode that got something new."""
        self.open[episode.key] = replace(episode, last_seen_us=self.now_us)


def gather(snapshot: Snapshot, before: FencingMemory) -> Gathered:
    """Return the episodes with what this round observed, and the aborts to remember."""
    now = microseconds(snapshot.taken_at)
    aborts = (*before.aborts, *_own_aborts(snapshot.transaction_log.ended, now))
    oldest = now - ABORTS_KEPT // MICROSECOND
    recent = tuple(each for each in aborts if each.seen_us > oldest)[-MAX_ABORTS:]
    gathered = Gathered(snapshot=snapshot, now_us=now, open=dict(before.open), aborts=recent)
    for ended in snapshot.transaction_log.ended:
        if ended.cut is not None:
            _add_cut(gathered, ended)
    for initialised in snapshot.transaction_log.initialised:
        _add_initialised(gathered, initialised)
    _add_lines(gathered)
    _resolve(gathered)
    _note_aborts(gathered)
    return gathered


def _own_aborts(ended: Iterable[EndedTransaction], now_us: int) -> Iterable[OwnAbort]:
    for each in ended:
        if each.outcome is Outcome.ABORTED and each.cut is None and each.marker_epoch is not None:
            yield OwnAbort(
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
                marker_epoch=each.marker_epoch,
                ended_us=microseconds(each.ended_at),
                seen_us=now_us,
            )


def _add_cut(gathered: Gathered, ended: EndedTransaction) -> None:
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
    others = [
        each
        for each in episode.cuts
        if each.cut is not cut.cut or not _is_same_cut(each, cut)  # a line said so before
    ]
    count = episode.cut_count + (len(others) == len(episode.cuts))
    joined = replace(episode, cuts=tuple(others), producer_id=ended.producer_id)
    gathered.put(_with_parts(joined, cuts=(cut,), cut_count=count))


def _is_same_cut(first: CutTransaction, second: CutTransaction) -> bool:
    """Whether a coordinator's line and its record are about the same abort."""
    if None not in (first.producer_epoch, second.producer_epoch):
        return first == second
    return abs(first.ended_us - second.ended_us) <= _AT_ONCE_US


def _add_initialised(gathered: Gathered, initialised: Initialisation) -> None:
    if initialised.producer_epoch == 0:
        return  # a new id, or the epochs of the producer id were used up
    _add_takeover(
        gathered,
        initialised.transactional_id,
        _takeover_of(gathered, initialised),
    )


def _takeover_of(gathered: Gathered, initialised: Initialisation) -> Takeover:
    """Return an initialisation as a takeover, by the abort that it followed at once."""
    at, epoch = microseconds(initialised.at), initialised.producer_epoch
    takeover = Takeover(producer_id=initialised.producer_id, producer_epoch=epoch, at_us=at)
    for each in gathered.aborts:
        is_same = each.transactional_id == initialised.transactional_id
        if is_same and each.marker_epoch == epoch - 1 and 0 <= at - each.ended_us <= _AT_ONCE_US:
            if each.marker_epoch > each.producer_epoch:  # transactions v2
                return replace(takeover, is_cut=None)
            return replace(takeover, is_own=None)
    episode = gathered.open.get(key_of(initialised.transactional_id, None))
    cuts = () if episode is None else episode.cuts
    is_cut = any(cut.cut is Cut.SECOND_INSTANCE and cut.producer_epoch == epoch - 2 for cut in cuts)
    return replace(takeover, is_cut=is_cut)


def _add_takeover(gathered: Gathered, transactional_id: str, takeover: Takeover) -> None:
    episode = gathered.add(transactional_id, None)
    same = next((each for each in episode.takeovers if _is_same_takeover(each, takeover)), None)
    if same is not None:
        joined = _join_takeovers(same, takeover)
        others = tuple(each for each in episode.takeovers if each is not same)
        gathered.put(_with_parts(replace(episode, takeovers=others), takeovers=(joined,)))
        return
    counted = replace(episode, producer_id=takeover.producer_id)
    count = episode.takeover_count + 1
    gathered.put(_with_parts(counted, takeovers=(takeover,), takeover_count=count))


def _is_same_takeover(first: Takeover, second: Takeover) -> bool:
    one, other = ((each.producer_id, each.producer_epoch) for each in (first, second))
    return one == other


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
    """Return whether it is another's: the request log says so of an InitProducerId without an epoch."""
    is_named = any(each.instance is not None and each.is_own is False for each in (first, second))
    return False if is_named or (first.is_own is second.is_own is False) else None


def _with_parts(
    episode: FencingEpisode,
    *,
    takeovers: tuple[Takeover, ...] = (),
    takeover_count: int | None = None,
    cuts: tuple[CutTransaction, ...] = (),
    cut_count: int | None = None,
) -> FencingEpisode:
    """Return an episode with more parts, bounded as `join_episodes` does."""
    more = replace(episode, takeovers=takeovers, cuts=cuts, requests=())
    joined = join_episodes(replace(episode, reported=None), more)
    return replace(
        joined,
        takeover_count=episode.takeover_count if takeover_count is None else takeover_count,
        cut_count=episode.cut_count if cut_count is None else cut_count,
    )


def _add_lines(gathered: Gathered) -> None:
    for event in gathered.snapshot.broker_log.events:
        if isinstance(event, ProducerInitialised):
            _add_line_initialised(gathered, event)
        elif isinstance(event, TransactionTimedOut):
            _add_timed_out(gathered, event)
        elif isinstance(event, ProducerRequest):
            _add_request(gathered, event)
        elif isinstance(event, EpochRejected):
            _add_epoch_rejected(gathered, event)


def _add_line_initialised(gathered: Gathered, event: ProducerInitialised) -> None:
    """Take a coordinator's line where its log is not read, or lacks the initialisation."""
    if event.producer_epoch == 0 or event.origin.at is None:
        return
    initialised = Initialisation(
        transactional_id=event.transactional_id,
        producer_id=event.producer_id,
        producer_epoch=event.producer_epoch,
        at=event.origin.at,
    )
    _add_initialised(gathered, initialised)


def _add_timed_out(gathered: Gathered, event: TransactionTimedOut) -> None:
    at = _at(gathered, event.origin)
    cut = CutTransaction(cut=Cut.TIMEOUT, ended_us=at)
    episode = gathered.add(event.transactional_id, None)
    if any(each.cut is Cut.TIMEOUT and _is_same_cut(each, cut) for each in episode.cuts):
        return
    gathered.put(_with_parts(episode, cuts=(cut,), cut_count=episode.cut_count + 1))


def _add_request(gathered: Gathered, event: ProducerRequest) -> None:
    """Take a line of the request log; of an id without an episode only what fences or was fenced."""
    name = event.transactional_id
    if event.error is not None:
        _add_rejected_request(gathered, event)
    elif name is None:
        return
    elif (
        event.request == "InitProducerId" and event.producer_epoch and event.producer_id is not None
    ):
        takeover = Takeover(
            producer_id=event.producer_id,
            producer_epoch=event.producer_epoch,
            at_us=_at(gathered, event.origin),
            is_own=event.is_own_epoch,
            instance=event.instance,
        )
        _add_takeover(gathered, name, takeover)
        _update(gathered, name, has_request_log=True)
    elif event.is_commit is False and event.producer_epoch is not None:
        episode = gathered.open.get(key_of(name, None))
        if episode is not None:
            epochs = (*episode.aborted_by_owner, event.producer_epoch)
            _update(gathered, name, aborted_by_owner=tuple(sorted(set(epochs)))[-8:])


def _update(gathered: Gathered, transactional_id: str, **changes: object) -> None:
    episode = gathered.add(transactional_id, None)
    gathered.open[episode.key] = replace(episode, **changes)  # type: ignore[arg-type]


def _add_rejected_request(gathered: Gathered, event: ProducerRequest) -> None:
    if event.transactional_id is None and event.request == "Produce":
        return  # of an idempotent producer: the leader's own line has its id
    at = _at(gathered, event.origin)
    requests = FencedRequests(
        source=RejectionSource.REQUEST_LOG,
        request=event.request,
        error=event.error or "",
        first_us=at,
        last_us=at,
        producer_epoch=event.producer_epoch,
        instance=event.instance,
    )
    producer_id = event.producer_id if event.transactional_id is None else None
    add_requests(gathered, event.transactional_id, producer_id, requests)


def _add_epoch_rejected(gathered: Gathered, event: EpochRejected) -> None:
    if event.producer_id is None:
        return  # before Kafka 2.2 no line names the producer
    at = _at(gathered, event.origin)
    requests = FencedRequests(
        source=RejectionSource.BROKER_LOG,
        request="Produce",
        error="INVALID_PRODUCER_EPOCH",
        first_us=at,
        last_us=at,
        producer_epoch=event.producer_epoch,
        current_epoch=event.current_epoch,
        name=partition_of(event),
    )
    owner = _owners(gathered).get(event.producer_id)
    add_requests(gathered, owner, None if owner else event.producer_id, requests)


def add_requests(
    gathered: Gathered,
    transactional_id: str | None,
    producer_id: int | None,
    requests: FencedRequests,
) -> None:
    """Add rejected requests to the episode of an id."""
    episode = gathered.add(transactional_id, producer_id)
    by_key = {each.key: each for each in episode.requests}
    before = by_key.pop(requests.key, None)
    by_key[requests.key] = requests if before is None else join_requests(before, requests)
    gathered.put(replace(episode, requests=tuple(by_key.values())[-KEPT_REQUESTS:]))


def _owners(gathered: Gathered) -> Mapping[int, str]:
    """Return the transactional ids by producer id, as far as this round and the episodes show."""
    snapshot = gathered.snapshot
    return {
        **{
            each.producer_id: each.transactional_id
            for each in gathered.open.values()
            if each.producer_id is not None and each.transactional_id is not None
        },
        **{each.producer_id: each.transactional_id for each in gathered.aborts},
        **{each.producer_id: each.transactional_id for each in snapshot.transaction_log.ended},
        **{pid: each.transactional_id for pid, each in snapshot.transactions.by_producer().items()},
    }


def _resolve(gathered: Gathered) -> None:
    """Find the transactional id of producers, or that they have none, by the coordinators' answers."""
    unknown = [
        each
        for each in gathered.open.values()
        if each.transactional_id is None
        and each.producer_id is not None
        and each.is_idempotent is None
    ]
    if not unknown:
        return
    owners, transactions = _owners(gathered), gathered.snapshot.transactions
    is_visible = transactions.is_complete and (
        transactions.visibility is not IdVisibility.UNPROVEN or not transactions.was_ever_used
    )
    for episode in unknown:
        owner = owners.get(episode.producer_id or 0)
        if owner is not None:
            _rename(gathered, episode, owner)
        elif is_visible and episode.producer_id in transactions.resolved:
            gathered.touched.add(episode.key)
            gathered.open[episode.key] = replace(episode, is_idempotent=True)


def _rename(gathered: Gathered, episode: FencingEpisode, transactional_id: str) -> None:
    """Make an episode of a producer id one of its transactional id."""
    del gathered.open[episode.key]
    gathered.touched.discard(episode.key)
    named = replace(episode, transactional_id=transactional_id)
    existing = gathered.open.get(named.key)
    gathered.touched.add(named.key)
    gathered.open[named.key] = named if existing is None else join_episodes(existing, named)


def _note_aborts(gathered: Gathered) -> None:
    """Note at episodes with rejected requests which epochs their owners are known to have left."""
    names = {
        episode.transactional_id
        for key in gathered.touched
        if (episode := gathered.open.get(key)) is not None and episode.requests
    }
    for each in gathered.aborts if names else ():
        if each.transactional_id in names:
            key = key_of(each.transactional_id, None)
            episode = gathered.open[key]
            epochs = {*episode.aborted_epochs, each.producer_epoch}
            gathered.open[key] = replace(episode, aborted_epochs=tuple(sorted(epochs))[-8:])


def _at(gathered: Gathered, origin: Origin) -> int:
    """Return the time of a line, or that of the round where it has none."""
    at: datetime = gathered.snapshot.taken_at if origin.at is None else origin.at
    return microseconds(at)
