"""The rules about lost records, as the truths name them."""

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
