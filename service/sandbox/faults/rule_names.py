"""The rules about lost records and about sequence gaps, as the truths name them."""

from __future__ import annotations

from typing import Final

COMMITTED_LOST: Final = "committed_records_lost"
POSSIBLY_LOST: Final = "records_possibly_lost"
UNREPLICATED_LOST: Final = "unreplicated_records_lost"
COMMITTED_BEYOND_END: Final = "committed_beyond_log_end"
UNCLEAN_ELECTION: Final = "unclean_leader_election"
EVERY_LOSS_RULE: Final = (
    COMMITTED_LOST,
    POSSIBLY_LOST,
    UNREPLICATED_LOST,
    COMMITTED_BEYOND_END,
    UNCLEAN_ELECTION,
)
# Wrong after a clean change of leaders. What was not replicated at the last observation may be gone:
# it was not acknowledged.
CLEAN_CHANGE_RULES: Final = tuple(rule for rule in EVERY_LOSS_RULE if rule != UNREPLICATED_LOST)

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
