"""Lines of a transaction coordinator: a producer was initialised, a transaction timed out.

Source: TransactionCoordinator of Kafka 1.1 to 4.4, and lines of real 4.1 brokers.
"""

from __future__ import annotations

from typing import Final

from collectors.broker_log.wording.fields import (
    NUMBER,
    compile_pattern,
    int16,
    int64,
    match_start,
)
from collectors.broker_log.wording.line import Line
from rules.facts.broker_log import ProducerInitialised, TransactionTimedOut

INITIALISED: Final = "Initialized transactionalId "
ROLLED_BACK: Final = "Completed rollback of ongoing transaction for transactionalId "

# A transactional id may be any text: the words behind it, searched from the end, divide.
_INITIALISED: Final = compile_pattern(
    rf"{INITIALISED}(?P<name>.*) with producerId (?P<producer>{NUMBER}) and producer epoch"
    rf" (?P<epoch>{NUMBER}) on partition __transaction_state-\d{{1,10}}"
)
_TIMED_OUT: Final = compile_pattern(rf"{ROLLED_BACK}(?P<name>.*) due to timeout")


def initialised(line: Line) -> ProducerInitialised:
    """Read that a transactional id got a producer id and epoch."""
    match = match_start(_INITIALISED, line.message)
    return ProducerInitialised(
        origin=line.origin,
        transactional_id=match["name"],
        producer_id=int64(match["producer"]),
        producer_epoch=int16(match["epoch"]),
    )


def timed_out(line: Line) -> TransactionTimedOut:
    """Read that a transaction was aborted because its timeout was over."""
    match = match_start(_TIMED_OUT, line.message)
    return TransactionTimedOut(origin=line.origin, transactional_id=match["name"])
