"""What the sandbox's brokers wrote of rejected batches, parsed here.

Not by the product's parser: a truth that is read as the product reads it would prove nothing. Only
the words of the Kafka version that the sandbox runs are known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rules.facts.broker_log import SequenceForm
from rules.facts.identity import BrokerId, TopicPartition
from service.sandbox.cluster.cluster import Sandbox

_EXCEPTION: Final = r"org\.apache\.kafka\.common\.errors\.{}Exception: "
_OUT_OF_ORDER: Final = _EXCEPTION.format("OutOfOrderSequence")
_PLACE: Final = r"at offset (?P<offset>\d+) in partition (?P<where>\S+): "
_FORMS: Final = {
    SequenceForm.OUT_OF_ORDER: (
        r"Out of order sequence number for producer (?P<id>\d+) " + _PLACE + r"(?P<incoming>\d+) "
        r"\(incoming seq\. number\), (?P<current>-?\d+) \(current end sequence number\)"
    ),
    SequenceForm.EARLIEST_SEEN: (
        r"Out of order sequence number for producer (?P<id>\d+) " + _PLACE + r"(?P<incoming>\d+) "
        r"\(incoming seq\. number\), (?P<current>\d+) \(earliest seen sequence\)"
    ),
    # Without a space before "at" from Kafka 3.5 to 4.3.
    SequenceForm.NEW_EPOCH: (
        r"Invalid sequence number for new epoch of producer (?P<id>\d+) ?"
        + _PLACE
        + r"(?P<epoch>\d+) "
        r"\(request epoch\), (?P<incoming>\d+) \(seq\. number\), \d+ \(current producer epoch\)"
    ),
    SequenceForm.EXPECTED_ZERO: (
        r"Invalid sequence number for producer (?P<id>\d+) " + _PLACE + r"(?P<incoming>\d+) "
        r"\(incoming seq\. number\)\. Expected sequence 0 .*"
    ),
}
_PATTERNS: Final = {
    form: re.compile(_OUT_OF_ORDER + text, re.ASCII) for form, text in _FORMS.items()
}
_OLD_EPOCH: Final = re.compile(
    _EXCEPTION.format("InvalidProducerEpoch")
    + r"Epoch of producer (?P<id>\d+) at offset \d+ in (?P<where>\S+) is \d+, which is .*",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """One record of a broker's log about a batch that it rejected as out of order."""

    broker_id: BrokerId
    form: SequenceForm
    producer_id: int
    offset: int  # that the batch would have got
    incoming_sequence: int
    current_sequence: int | None  # None: the form does not contain it
    producer_epoch: int | None  # of the request, likewise


def rejections_on(sandbox: Sandbox, where: TopicPartition) -> list[Rejection]:
    """Return what all brokers wrote about a partition, each broker's in its order."""
    rejections = (rejection_in(line, broker, where) for broker, line in _lines(sandbox, str(where)))
    return [rejection for rejection in rejections if rejection is not None]


def old_epochs_on(sandbox: Sandbox, where: TopicPartition) -> list[int]:
    """Return the producer ids of batches that came too late, with an older epoch."""
    producer_ids = (old_epoch_in(line, where) for _, line in _lines(sandbox, str(where)))
    return [producer_id for producer_id in producer_ids if producer_id is not None]


def rejection_in(line: str, broker_id: BrokerId, where: TopicPartition) -> Rejection | None:
    """Return the rejection in the second physical line of a record, if it is about this partition."""
    for form, pattern in _PATTERNS.items():
        match = pattern.fullmatch(line)
        if match is not None and match["where"] == str(where):
            return _rejection(broker_id, form, match)
    return None


def old_epoch_in(line: str, where: TopicPartition) -> int | None:
    """Return the producer id of a batch that came with an older epoch to this partition."""
    match = _OLD_EPOCH.fullmatch(line)
    return int(match["id"]) if match is not None and match["where"] == str(where) else None


def _lines(sandbox: Sandbox, word: str) -> Iterator[tuple[BrokerId, str]]:
    """Yield the lines with a word of every broker's server.log, rotated files first."""
    for broker in sandbox.state.brokers:
        folder = sandbox.log_directory(broker.id)
        for path in (*sorted(folder.glob("server.log.*")), folder / "server.log"):
            with path.open(encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    if word in line:
                        yield BrokerId(broker.id), line.rstrip("\n")


def _rejection(broker_id: BrokerId, form: SequenceForm, match: re.Match[str]) -> Rejection:
    groups = match.groupdict()
    current, epoch = groups.get("current"), groups.get("epoch")
    return Rejection(
        broker_id=broker_id,
        form=form,
        producer_id=int(match["id"]),
        offset=int(match["offset"]),
        incoming_sequence=int(match["incoming"]),
        current_sequence=None if current is None else int(current),
        producer_epoch=None if epoch is None else int(epoch),
    )
