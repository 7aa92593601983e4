"""Leaders that tell where epochs ended, and rounds of one reader that asks them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kio.schema.errors import ErrorCode

from collectors.epoch_ends import EpochEndReader
from collectors.wire.api import OFFSET_FOR_LEADER_EPOCH, Api
from rules.facts.gap import Gap
from rules.facts.groups import Commits
from rules.facts.identity import Broker
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions
from rules.question import EpochEndQuestion
from tests.factories import broker, commits, ints, offsets, partitions
from tests.unit.collectors.scripted_pool import Respond, scripted
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, part

FIRST, SECOND = broker(1), broker(2)
NONE = (-1, -1)
BROKEN = 56  # KAFKA_STORAGE_ERROR

RoundRequests = list[tuple[int, list[tuple[str, int, int]]]]  # broker id; topic, partition, epoch
Told = list[tuple[int, int, int | None, int | None]]  # row, epoch asked about, found epoch, end
Entry = tuple[int, int, int]  # error, found epoch, end offset


def ends_answer(
    topics: Mapping[str, Mapping[int, Entry]], *, version: int = OFFSET_FOR_LEADER_EPOCH.newest
) -> bytes:
    """Return the body of an answer."""
    entry = part(OFFSET_FOR_LEADER_EPOCH, version, "EpochEndOffset")
    topic = part(OFFSET_FOR_LEADER_EPOCH, version, "OffsetForLeaderTopicResult")
    told = tuple(
        topic(
            topic=name,
            partitions=tuple(
                entry(
                    partition=number,
                    error_code=ErrorCode(error),
                    leader_epoch=found,
                    end_offset=end,
                )
                for number, (error, found, end) in entries.items()
            ),
        )
        for name, entries in topics.items()
    )
    return answer(OFFSET_FOR_LEADER_EPOCH, version, throttle_time=NO_THROTTLE, topics=told)


def places(request: Any) -> list[tuple[str, int, int]]:
    return [
        (str(topic.topic), int(one.partition), int(one.leader_epoch))
        for topic in request.topics
        for one in topic.partitions
    ]


def answering(of: Callable[[str, int, int], Entry | None]) -> Respond:
    """Answer by topic, partition and epoch; None leaves the partition out."""

    def respond(_: Broker, __: Api, request: Any) -> bytes:
        topics: dict[str, dict[int, Entry]] = {}
        for name, number, epoch in places(request):
            one = of(name, number, epoch)
            if one is not None:
                topics.setdefault(name, {})[number] = one
        return ends_answer(topics)

    return respond


def ended(_: str, number: int, epoch: int) -> Entry:
    """Tell an end that says which partition and epoch were asked about."""
    return 0, epoch, 1000 * number + epoch


@dataclass
class Rounds:
    """Rounds of one reader."""

    respond: Respond = field(default_factory=lambda: answering(ended))
    reader: EpochEndReader = field(default_factory=EpochEndReader)
    reported: Told = field(init=False)
    gaps: list[Gap] = field(init=False)
    requests: list[Any] = field(init=False)

    def read(
        self,
        epochs: Sequence[int | None] | Offsets = (5, 5, 5),
        *,
        placed: Partitions | None = None,
        committed: Commits | None = None,
        questions: Sequence[EpochEndQuestion] = (),
    ) -> RoundRequests:
        """Make a round with these present leader epochs; return who was asked about what."""
        session, pool = scripted((FIRST, SECOND), self.respond)
        rows = partitions() if placed is None else placed
        seen = epochs if isinstance(epochs, Offsets) else offsets(len(rows), leader_epoch=epochs)
        found = self.reader.collect(
            session, rows, seen, Commits.none() if committed is None else committed, questions
        )
        self.reported = [
            (*pair, found.found_epoch[place], found.end_offset[place])
            for place, pair in enumerate(zip(found.row.tolist(), found.epoch.tolist(), strict=True))
        ]
        self.gaps = session.gaps
        asked = pool.of(OFFSET_FOR_LEADER_EPOCH)
        self.requests = [request for _, request in asked]
        return [(one.broker_id, places(request)) for one, request in asked]


def about(*pairs: tuple[int, int], placed: Partitions | None = None) -> EpochEndQuestion:
    """Ask where the epochs of some rows ended."""
    return EpochEndQuestion(
        partitions() if placed is None else placed,
        ints(*(row for row, _ in pairs)),
        ints(*(epoch for _, epoch in pairs)),
    )


def committed_in(*epochs: int | None) -> Commits:
    """Return one commit per row, made in these leader epochs."""
    return commits(*((0, row, 10) for row in range(len(epochs))), epochs=epochs)


def refusing(codes: Mapping[int, int]) -> Respond:
    """Refuse some partitions of `orders` with an error code, answer for the others."""
    return answering(
        lambda name, number, epoch: (
            (codes[number], *NONE) if number in codes else ended(name, number, epoch)
        )
    )
