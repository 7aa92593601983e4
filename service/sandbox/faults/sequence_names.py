"""The rules of sequence gaps, as the truths name them, and who writes."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from service.sandbox.faults.rule_names import EVERY_LOSS_RULE


class Client(StrEnum):
    """Who writes: single requests, or a client library as applications use it."""

    RAW = "raw"
    LIBRDKAFKA = "librdkafka"
    JAVA = "java"


GAP_LOSS: Final = "sequence_gap_loss"
GAP_REORDERING: Final = "sequence_gap_reordering"
GAP_UNDETERMINED: Final = "sequence_gap_undetermined"
DUPLICATES: Final = "duplicates_possible"
SEQUENCE_BUG: Final = "producer_sequence_bug"
EVERY_SEQUENCE_RULE: Final = (
    GAP_LOSS,
    GAP_REORDERING,
    GAP_UNDETERMINED,
    DUPLICATES,
    SEQUENCE_BUG,
)
NOTHING_LOST: Final = (GAP_LOSS, *EVERY_LOSS_RULE)  # wrong wherever no record is gone
