"""Which panel shows which fault, and with which value.

Each table is asserted once, against a real Prometheus, where a test has the fault anyway and everything is
true; no fault is injected a second time for it. The services of tests/faults and of serve/test_losses.py run
anyway and are scraped; faults of transactions have a service for this alone (test_faults.py). A dead broker, a
stopped group and a failing producer are in serve/busy_panels.py, where all other queries have an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from rules.facts.sequence_verdicts import SequenceClass
from service.sandbox.faults import LossTruth, SequenceTruth, Truth
from tests.integration.serve.busy_panels import LOST_RECORDS
from tests.integration.serve.claims import (
    CLUSTER,
    IS_ABOVE_ZERO,
    IS_ONE,
    IS_THERE,
    Bounds,
    Claim,
    at_least,
    exactly,
    labelled,
    number,
)

FINDINGS_BY_RULE: Final = "tidemark-fleet/31 Open findings by rule A"


def finding_of(rule: str) -> Claim[object]:
    """Claim that findings of a rule are open."""
    return Claim(FINDINGS_BY_RULE, IS_THERE, labelled(rule=rule))


def _held(truth: Truth) -> Bounds:
    return exactly(truth.high_watermark - truth.last_stable_offset)


def _topic(truth: Truth) -> Mapping[str, str]:
    return {"topic": truth.where.topic}


def _partition(truth: Truth) -> Mapping[str, str]:
    return {"topic": truth.where.topic, "partition": str(truth.where.partition)}


def _group(truth: Truth) -> Mapping[str, str]:
    [group] = truth.blocked_groups
    return {"group": group}


def _commit(truth: Truth) -> Mapping[str, str]:
    return {**CLUSTER, **_partition(truth), **_group(truth)}


def open_of(class_: str, count: Callable[[object], Bounds] = IS_ONE) -> tuple[Claim[Truth], ...]:
    """Claim that one transaction of a class is open, of the whole cluster."""
    of_class = labelled(**{"class": class_})
    return (
        Claim("tidemark-transactions/10 Open transactions by class A", count, of_class),
        Claim(
            "tidemark-transactions/11 Oldest open transaction by class A", IS_ABOVE_ZERO, of_class
        ),
    )


HELD_BACK: Final[tuple[Claim[Truth], ...]] = (
    Claim("tidemark-transactions/4 Oldest open A", IS_ABOVE_ZERO),
    Claim("tidemark-transactions/5 LSO unmoved for A", IS_ABOVE_ZERO),
    Claim("tidemark-transactions/12 LSO unmoved, by topic A", IS_ABOVE_ZERO, _topic),
    Claim("tidemark-transactions/13 Offsets held back, by topic A", _held, _topic),
    Claim(
        "tidemark-transactions/30 Partitions whose LSO does not advance A",
        IS_ABOVE_ZERO,
        _partition,
    ),
    Claim("tidemark-pipeline/5 Held back A", _held, chosen=_topic),
    Claim("tidemark-pipeline/15 Held back by open transactions A", _held, _topic),
    Claim("tidemark-groups/4 Lag, read_committed A", number(exactly(0)), chosen=_group),
    Claim("tidemark-groups/5 Lag, read_uncommitted A", _held, chosen=_group),
    Claim("tidemark-groups/6 Held back A", _held, chosen=_group),
    Claim("tidemark-groups/14 Held back by open transactions A", _held, _group, _group),
    Claim("tidemark-usual/10 Lag in offsets A", number(exactly(0)), chosen=_commit),
    Claim("tidemark-usual/14 Held back by open transactions A", _held, chosen=_commit),
)
HANGING: Final[tuple[Claim[Truth], ...]] = (
    *HELD_BACK,
    *open_of("hanging"),
    Claim("tidemark-transactions/1 Hanging A", IS_ONE),
    Claim("tidemark-fleet/6 Hanging transactions A", IS_ONE),
    Claim("tidemark-fleet/3 Critical alerts A", IS_THERE),
    Claim("tidemark-alerts/1 Firing A", IS_THERE),
    Claim(
        "tidemark-fleet/20 Firing alerts by rule A", IS_ONE, labelled(rule="transaction_hanging")
    ),
    Claim(
        "tidemark-alerts/10 When which rule fired A", IS_ONE, labelled(rule="transaction_hanging")
    ),
    Claim("tidemark-transactions Alert", IS_ONE, labelled(rule="transaction_hanging")),
    finding_of("transaction_hanging"),
)
OVERDUE: Final[tuple[Claim[Truth], ...]] = (
    *HELD_BACK,
    *open_of("overdue"),
    Claim("tidemark-transactions/2 Overdue A", IS_ONE),
    finding_of("transaction_overdue"),
)
STUCK: Final[tuple[Claim[Truth], ...]] = (
    *HELD_BACK,
    *open_of("prepare_commit"),
    Claim("tidemark-transactions/3 Markers not written A", IS_ONE),
    Claim("tidemark-fleet/8 Partitions under min ISR A", IS_THERE),
    Claim("tidemark-replication/3 Under min ISR A", IS_ONE, chosen=_topic),
    Claim("tidemark-replication/10 Partitions by state B", IS_ONE, chosen=_topic),
    Claim("tidemark-replication/21 Too few replicas in sync A", IS_ONE, _partition, _topic),
)


def cut_by(cause: str) -> tuple[Claim[Truth], ...]:
    """Claim that an open transaction was taken from its producer, and aborted."""
    return (
        Claim("tidemark-transactions/21 Fencings by cause A", IS_ABOVE_ZERO, labelled(cause=cause)),
        Claim("tidemark-transactions/20 Commits and aborts B", IS_ABOVE_ZERO),
        Claim("tidemark-transactions/6 Abort ratio A", IS_ABOVE_ZERO),
        finding_of("producer_fenced"),
    )


TRANSACTIONS: Final[Mapping[str, tuple[Claim[Truth], ...]]] = {
    "open-transaction": (*HELD_BACK, *open_of("open", IS_THERE)),
    "hanging-transaction": HANGING,
    "overdue-transaction": OVERDUE,
    "stuck-marker": STUCK,
    "second-instance": cut_by("second_instance"),
    "timeout-fence": cut_by("timeout"),
}


def _partitions(truth: LossTruth) -> Bounds:
    return exactly(len(truth.partitions))


def _at_least_each(truth: LossTruth) -> Bounds:
    return at_least(len(truth.partitions))


def _of_lost(truth: LossTruth) -> Mapping[str, str]:
    return {"topic": truth.topic}


LOST: Final = labelled(rule="committed_records_lost")
LOSSES: Final[Mapping[str, tuple[Claim[LossTruth], ...]]] = {
    # Leader changes first: they are shown for a minute.
    "committed-loss": (
        Claim("tidemark-losses/11 Leader changes by topic A", _at_least_each, _of_lost),
        Claim("tidemark-replication/12 Leader changes A", _at_least_each, _of_lost),
        Claim(
            "tidemark-losses/12 Unclean elections, as controllers count them A",
            _at_least_each,
        ),
        Claim("tidemark-losses Leader change", _at_least_each, _of_lost),
        Claim("tidemark-pipeline Leader change", _at_least_each, _of_lost),
        Claim("tidemark-replication Leader change", _at_least_each, _of_lost),
        Claim("tidemark-losses/1 Proven losses A", _partitions),
        # Other rules report what is not settled, and what the readers had committed: of the same partitions.
        Claim("tidemark-losses/2 Possible losses A", number(exactly(0))),
        Claim("tidemark-losses/3 Unclean elections A", _partitions),
        Claim("tidemark-losses/10 Open findings of lost records A", _partitions, LOST),
        *(Claim(annotation, _partitions, LOST) for annotation in LOST_RECORDS),
        Claim(FINDINGS_BY_RULE, _partitions, LOST),
        Claim("tidemark-fleet/5 Open losses A", _partitions),
        Claim("tidemark-fleet/12 Partitions at risk A", _partitions),
        Claim("tidemark-fleet/20 Firing alerts by rule A", _partitions, LOST),
        Claim("tidemark-alerts/10 When which rule fired A", _partitions, LOST),
        Claim("tidemark-replication/1 Brokers A", number(exactly(2))),
        Claim("tidemark-replication/4 Under-replicated A", _partitions, chosen=_of_lost),
        Claim("tidemark-replication/10 Partitions by state A", _partitions, chosen=_of_lost),
    ),
}


def _episodes(class_: SequenceClass) -> Callable[[SequenceTruth], Bounds]:
    def bounds(truth: SequenceTruth) -> Bounds:
        return at_least(sum(episode.sequence_class is class_ for episode in truth.episodes))

    return bounds


def _lost_partitions(truth: SequenceTruth) -> Bounds:
    return at_least(len(truth.lost))


def gap_of(class_: SequenceClass, rule: str) -> tuple[Claim[SequenceTruth], ...]:
    """Claim that gaps of a class are confirmed, and that a rule has found them."""
    confirmed = labelled(**{"class": class_, "phase": "confirmed"})
    count, by_class = _episodes(class_), "tidemark-losses/14 Sequence episodes by class A"
    return (
        Claim("tidemark-losses/13 Rejected batches A", IS_ABOVE_ZERO),
        Claim(by_class, count, confirmed, grows=True),
        Claim(FINDINGS_BY_RULE, count, labelled(rule=rule), grows=True),
    )


LOSS_GAP: Final[tuple[Claim[SequenceTruth], ...]] = (
    *gap_of(SequenceClass.LOSS, "sequence_gap_loss"),
    Claim("tidemark-losses/4 Sequence gaps: loss A", _episodes(SequenceClass.LOSS), grows=True),
    Claim("tidemark-losses/1 Proven losses A", _lost_partitions, grows=True),
    Claim("tidemark-losses Lost records", _lost_partitions, LOST, grows=True),
)
REORDERING: Final = gap_of(SequenceClass.REORDERING, "sequence_gap_reordering")
SEQUENCES: Final[Mapping[str, tuple[Claim[SequenceTruth], ...]]] = {
    "sequence-loss": LOSS_GAP,
    "sequence-reordering": REORDERING,
    "sequence-in-transaction": REORDERING,
    "sequence-two-producers": (*LOSS_GAP, *REORDERING),
    "sequence-stale-retry": gap_of(SequenceClass.STALE_RETRY, "duplicates_possible"),
    "sequence-restart": gap_of(SequenceClass.SEQUENCE_RESTART, "producer_sequence_bug"),
}


_SAME: Final = "its rules' findings are on the panels of committed-loss, under their own names"
_SILENT: Final = "nothing is found, and nothing is to be shown"
_FENCED: Final = "the findings of its rule are on the panels of timeout-fence"
WITHOUT_VALUES: Final[Mapping[str, str]] = {
    "zombie": _FENCED,
    "fighting-instances": _FENCED,
    "unreplicated-loss": _SAME,
    "double-failover": _SAME,
    "unclean-without-loss": _SAME,
    "clean-failover-under-load": _SILENT,
    "topic-recreated": _SILENT,
    "records-deleted": _SILENT,
    "sequence-duplicate": "no broker writes of it",
    "sequence-state-expired": "its class is reported when a client's delivery timeout has passed",
    "sequence-delivery-timeout": _SILENT,
}
