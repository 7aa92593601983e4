"""Whether a truth about losses agrees with the log, and with what the fault was to make."""

from __future__ import annotations

from rules.errors import SandboxError
from service.sandbox.faults.loss_truth import LossTruth, PartitionTruth
from service.sandbox.faults.rule_names import COMMITTED_LOST, UNCLEAN_ELECTION, UNREPLICATED_LOST


def require_agreement(
    truth: PartitionTruth, before: dict[int, bytes], after: dict[int, bytes]
) -> None:
    """Compare the claim with the records: what could be read before, and cannot be now."""
    log_start = truth.after.log_start_offset  # what was deleted on purpose is not lost
    gone = sorted(at for at, value in before.items() if at >= log_start and after.get(at) != value)
    claim = range(truth.lost_from or 0, truth.lost_to or 0)
    claimed = sorted(at for at in before if at in claim)
    if gone != claimed:
        raise SandboxError(
            f"partition {truth.partition}: the epoch's end shows {claimed or 'no'} lost offsets, "
            f"and reading shows {gone or 'none'}"
        )


def require_expected(truth: LossTruth) -> None:
    """Raise for a truth that is not the one that the fault was to make."""
    has_committed_loss = any(partition.committed_to is not None for partition in truth.partitions)
    happened = {
        COMMITTED_LOST: has_committed_loss,
        UNREPLICATED_LOST: truth.lost_offsets > 0 and not has_committed_loss,
        # With the same leader again only the controller knows: its log is its own.
        UNCLEAN_ELECTION: truth.was_unclean and _has_another_leader(truth),
    }
    expected = {truth.rule, *truth.also}
    for rule, has_happened in happened.items():
        if rule in (truth.silent if has_happened else expected):
            negation = "" if has_happened else "not "
            raise SandboxError(f"{truth.fault} came otherwise: {rule} would {negation}be right")
    if truth.lost_offsets and not all(partition.lost_offsets for partition in truth.partitions):
        raise SandboxError(f"{truth.fault} came otherwise: some partitions lost nothing")


def _has_another_leader(truth: LossTruth) -> bool:
    return any(partition.before.leader != partition.after.leader for partition in truth.partitions)
