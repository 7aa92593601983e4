"""The memory of a cluster as compressed bytes: an .npz archive without pickles.

Offsets of one partition are close to each other, so all but the high watermark are stored as differences
from it; absent values are 0 on both sides. Measured with arbitrary offsets, which compress worst: 200 kB
for 10,000 partitions, 270 kB for 31,590 commits.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from rules.baseline.open_series import ScoringMemory
from rules.errors import StoreError
from rules.facts.broker_memory import BrokerMemory
from rules.facts.column import Column
from rules.facts.episodes import SequenceMemory
from rules.facts.group_memory import GroupMemory
from rules.facts.identity import TopicId
from rules.facts.last_observation import LastObservations
from rules.facts.leaderships import Leaderships
from rules.facts.loss_memory import LossMemory
from rules.facts.matching import matching_rows
from rules.facts.memory import Memory
from rules.facts.observation_context import ObservationContext
from rules.facts.partitions import PartitionIndex, Partitions
from rules.facts.replication_memory import ReplicationMemory
from rules.facts.suspicions import SuspicionMemory
from rules.facts.transaction_memory import OutcomeCounts, TransactionMemory
from rules.facts.unchanged_since import UnchangedSince
from service.storage.formats.arrays import (
    Arrays,
    Bases,
    ints_of,
    put_columns,
    put_unchanged,
    read_column,
    read_columns,
    read_text,
    read_unchanged,
    text_of,
)
from service.storage.formats.brokers import brokers_of, plain_brokers
from service.storage.formats.change_memory import add_places, changes_of, put_changes
from service.storage.formats.clients import clients_of, put_clients
from service.storage.formats.commits import commits_of, put_commits
from service.storage.formats.fencing import fencing_of, put_fencing
from service.storage.formats.former_names import present_names
from service.storage.formats.live_scoring import put_scoring, read_scoring
from service.storage.formats.loss import (
    losses_of,
    plain_elections,
    plain_first_epochs,
    plain_losses,
    with_elections,
    with_first_epochs,
)
from service.storage.formats.members import members_of, put_members
from service.storage.formats.objectives import objectives_of, put_objectives
from service.storage.formats.sequence import plain_sequences, sequences_of
from service.storage.formats.suspicions import plain_suspicions, suspicions_of
from service.storage.formats.values import plain, read

FORMAT: Final = 5
# Format 1 lacks when a commit was last seen, format 2 lacks elections whose old leader was never
# observed, and formats up to 4 have other names.
READABLE: Final = (1, 2, 3, 4, 5)
PRESENT_NAMES: Final = 5
COMPRESSION: Final = 1  # zlib's fastest: 6 takes three times as long for a tenth less
OBSERVATION: Final = "observation"
CONTEXT: Final = "observation.context"  # absent in older checkpoints
# Absent in older checkpoints.
UNCLEAN: Final = "unclean_election_enabled"
GROUPS: Final = "group.names"
LOSSES: Final = "losses"
ELECTIONS: Final = "losses.elections"
FIRST_EPOCHS: Final = "losses.first_epochs"
SEQUENCES: Final = "sequences"
SUSPICIONS: Final = "suspicions"
LOG_POSITIONS: Final = "log_positions"
OUTCOMES: Final = "transaction.outcomes"
REPLICATION: Final = "replication"
BROKERS: Final = "brokers"
OUTCOMES_KEPT: Final = 1000  # transactional ids, those with the most aborts


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What a restart needs of one cluster."""

    memory: Memory | None = None  # None before the first successful round
    unknown_since: Mapping[str, int] = field(default_factory=dict)  # rule id -> microseconds
    log_positions: Mapping[str, str] = field(default_factory=dict)  # feed -> its own notation
    scoring: ScoringMemory | None = None  # None: no series was scored


def encode(checkpoint: Checkpoint) -> bytes:
    """Encode a checkpoint as bytes of format `FORMAT`."""
    arrays: Arrays = {
        "unknown_since": text_of(dict(checkpoint.unknown_since)),
        LOG_POSITIONS: text_of(dict(checkpoint.log_positions)),
    }
    if checkpoint.memory is not None:
        _put_memory(arrays, checkpoint.memory)
    put_scoring(arrays, checkpoint.scoring)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION) as archive:
        for name, array in arrays.items():
            with archive.open(name, "w") as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    return buffer.getvalue()


def decode(content: bytes, version: int) -> Checkpoint:
    """Decode a checkpoint of any readable format.

    Raises:
        StoreError: the format is unknown, or the bytes are damaged.
    """
    if version not in READABLE:
        raise StoreError(
            f"the checkpoint has format {version}, and this version reads up to {FORMAT}: "
            "run the Tidemark that wrote it, or delete it and lose the stored memory",
            retryable=False,
        )
    try:
        arrays = _arrays(content)
        if version < PRESENT_NAMES:
            arrays = present_names(arrays)
        if version == 1 and "cluster" in arrays:
            _add_commits_seen(arrays)
        memory = _memory(arrays) if "cluster" in arrays else None
        since = read(dict[str, int], read_text(arrays["unknown_since"]))
        positions = read_text(arrays[LOG_POSITIONS]) if LOG_POSITIONS in arrays else {}
        log_positions = read(dict[str, str], positions)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as exc:
        raise _damaged(exc) from exc
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as exc:
        raise _damaged(exc) from exc
    return Checkpoint(
        memory=memory,
        unknown_since=since,
        log_positions=log_positions,
        scoring=read_scoring(arrays),
    )


def _damaged(exc: Exception) -> StoreError:
    return StoreError(
        f"the checkpoint is damaged ({type(exc).__name__}): delete it and lose the stored memory",
        retryable=False,
    )


def _arrays(content: bytes) -> Arrays:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        arrays: Arrays = {}
        for name in archive.namelist():
            with archive.open(name) as file:
                arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
        return arrays


def _add_commits_seen(arrays: Arrays) -> None:
    """Use the latest time in a checkpoint of format 1 as the time at which every commit was last seen."""
    times = np.concatenate([arrays["observation.observed_at_us"], arrays["commit.since"]])
    latest = int(times.max(initial=0))
    arrays["commit.seen"] = np.full(len(arrays["commit.row"]), latest, np.int64)


def _put_memory(into: Arrays, memory: Memory) -> None:
    places: list[Partitions] = []
    leaderships = memory.sequences.leaderships
    used = (
        memory.partitions,
        memory.observations.partitions,
        memory.commits.partitions,
        leaderships.partitions,
    )
    for partitions in used:  # nearly always the same one
        if not any(partitions is place for place in places):
            places.append(partitions)
    add_places(places, memory.changes)
    numbers = [next(n for n, place in enumerate(places) if place is item) for item in used]
    into["cluster"] = text_of([memory.cluster_id, len(places), numbers])
    for number, partitions in enumerate(places):
        _put_partitions(into, f"partitions{number}", partitions)
    _put_observations(into, memory.observations)
    put_unchanged(into, "high_watermark", memory.high_watermark)
    base = memory.high_watermark.values
    put_unchanged(into, "last_stable_offset", memory.last_stable_offset, base)
    put_commits(into, memory.commits)
    into[GROUPS] = text_of(list(memory.groups.group_ids))
    into["group.seen"] = memory.groups.seen_us
    put_columns(into, "group", memory.groups)
    put_members(into, memory.members)
    into[OUTCOMES] = text_of(plain(_aborting(memory.transactions)))
    into[LOSSES] = text_of(plain_losses(memory.losses))
    into[ELECTIONS] = text_of(plain_elections(memory.losses))
    into[FIRST_EPOCHS] = text_of(plain_first_epochs(memory.losses))
    into[SEQUENCES] = text_of(plain_sequences(memory.sequences))
    put_columns(into, "leadership", leaderships)
    put_fencing(into, memory.fencing)
    into[SUSPICIONS] = text_of(plain_suspicions(memory.suspicions))
    put_objectives(into, memory.objectives)
    rows = len(memory.partitions)
    replication = replace(memory.replication.padded(rows), first_seen_us=Column.absent(rows))
    put_columns(into, REPLICATION, replication)
    into[BROKERS] = text_of(plain_brokers(memory.brokers))
    put_changes(into, memory.changes, places)
    put_clients(into, memory.clients)


def _memory(arrays: Arrays) -> Memory:
    cluster_id, count, numbers = read_text(arrays["cluster"])
    places = [_partitions(arrays, f"partitions{number}") for number in range(count)]
    own, of_observations, of_commits, *of_leaderships = (places[number] for number in numbers)
    high_watermark = read_unchanged(arrays, "high_watermark", len(own))
    stood = high_watermark.take(matching_rows(of_observations, own, needs_id=False))
    return Memory(
        cluster_id=str(cluster_id),
        partitions=own,
        observations=_observations(arrays, of_observations, stood),
        high_watermark=high_watermark,
        last_stable_offset=read_unchanged(
            arrays, "last_stable_offset", len(own), high_watermark.values
        ),
        commits=commits_of(arrays, of_commits),
        groups=_groups(arrays),
        members=members_of(arrays),
        transactions=TransactionMemory(
            outcomes=read(
                dict[str, tuple[OutcomeCounts, ...]],
                read_text(arrays[OUTCOMES]) if OUTCOMES in arrays else {},
            )
        ),
        losses=_losses(arrays),
        sequences=_sequences(arrays, of_leaderships),
        fencing=fencing_of(arrays),
        suspicions=suspicions_of(read_text(arrays[SUSPICIONS]))
        if SUSPICIONS in arrays
        else SuspicionMemory(),
        objectives=objectives_of(arrays),
        replication=_replication(arrays, len(own)),
        brokers=brokers_of(read_text(arrays[BROKERS])) if BROKERS in arrays else BrokerMemory(),
        changes=changes_of(arrays, places),
        clients=clients_of(arrays),
    )


def _replication(arrays: Arrays, rows: int) -> ReplicationMemory:
    if f"{REPLICATION}.seen_us" not in arrays:
        return ReplicationMemory.absent(rows)
    return ReplicationMemory(**read_columns(arrays, REPLICATION, ReplicationMemory, rows))


def _losses(arrays: Arrays) -> LossMemory:
    memory = losses_of(read_text(arrays[LOSSES])) if LOSSES in arrays else LossMemory()
    for name, add in ((ELECTIONS, with_elections), (FIRST_EPOCHS, with_first_epochs)):
        if name in arrays:
            memory = add(memory, read_text(arrays[name]))
    return memory


def _sequences(arrays: Arrays, places: list[Partitions]) -> SequenceMemory:
    """Return the memory of sequences, empty in checkpoints of older versions."""
    if SEQUENCES not in arrays:
        return SequenceMemory()
    [partitions] = places
    columns = read_columns(arrays, "leadership", Leaderships, len(partitions))
    leaderships = Leaderships(partitions=partitions, **columns)
    return replace(sequences_of(read_text(arrays[SEQUENCES])), leaderships=leaderships)


def _aborting(memory: TransactionMemory) -> dict[str, tuple[OutcomeCounts, ...]]:
    """Return the recent outcomes of transactional ids that aborted transactions.

    The rest of the memory of transactions is rebuilt within two rounds of a restart.
    """
    aborted = {
        name: sum(counts.aborted for counts in slices) for name, slices in memory.outcomes.items()
    }
    most = sorted((name for name in aborted if aborted[name]), key=lambda name: -aborted[name])
    return {name: memory.outcomes[name] for name in most[:OUTCOMES_KEPT]}


def _put_observations(into: Arrays, observations: LastObservations) -> None:
    """Add the last observations and their context."""
    base, context = observations.high_watermark, observations.context
    put_columns(into, OBSERVATION, observations, _bases(base))
    put_unchanged(into, CONTEXT, context.high_watermark, base)
    put_columns(into, CONTEXT, context, {"isr_reported_us": observations.observed_at_us})


def _observations(
    arrays: Arrays, partitions: Partitions, stood: UnchangedSince
) -> LastObservations:
    """Read the last observations; older checkpoints have no context, which `stood` replaces."""
    rows = len(partitions)
    base = read_column(arrays, f"{OBSERVATION}.high_watermark", rows)
    columns = read_columns(
        arrays,
        OBSERVATION,
        LastObservations,
        rows,
        bases=_bases(base),
        optional=("leader", "log_start_offset"),
    )
    context = ObservationContext.of(partitions, stood, Column.absent(rows))
    if f"{CONTEXT}.replicas" in arrays:
        bases = {"isr_reported_us": columns["observed_at_us"]}
        context = ObservationContext(
            high_watermark=read_unchanged(arrays, CONTEXT, rows, base),
            **read_columns(arrays, CONTEXT, ObservationContext, rows, bases=bases),
        )
    return LastObservations(partitions=partitions, context=context, **columns)


def _bases(high_watermark: Column) -> Bases:
    names = ("log_start_offset", "last_stable_offset", "log_end_offset")
    return dict.fromkeys(names, high_watermark)


def _groups(arrays: Arrays) -> GroupMemory:
    """Return the memory of groups; without it, groups without members count as abandoned."""
    if GROUPS not in arrays:
        return GroupMemory.none()
    names = read(tuple[str, ...], read_text(arrays[GROUPS]))
    return GroupMemory(
        group_ids=names,
        seen_us=ints_of(arrays["group.seen"], len(names)),
        **read_columns(arrays, "group", GroupMemory, len(names)),
    )


def _put_partitions(into: Arrays, name: str, partitions: Partitions) -> None:
    counts = np.diff(partitions.index.starts).tolist()
    topics = zip(
        partitions.index.topics, counts, partitions.topic_ids, partitions.internal, strict=True
    )
    into[f"{name}.topics"] = text_of([list(topic) for topic in topics])
    put_columns(into, name, partitions)


def _partitions(arrays: Arrays, name: str) -> Partitions:
    stored = read_text(arrays[f"{name}.topics"])
    topics = read(tuple[tuple[str, int, TopicId | None, bool], ...], stored)
    index = PartitionIndex.of({topic: count for topic, count, _, _ in topics})
    return Partitions(
        index=index,
        topic_ids=tuple(topic_id for _, _, topic_id, _ in topics),
        internal=tuple(internal for _, _, _, internal in topics),
        **read_columns(arrays, name, Partitions, len(index), optional=(UNCLEAN,)),
    )
