"""The acts: what is done to the cluster, and what of it has to be seen in Tidemark's answers."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from collectors.naming import counted
from service.sandbox.demo.act import Act, Observation, Seen, Step
from service.sandbox.demo.api import RoundStatus, Row
from service.sandbox.demo.loss_act import LOSS
from service.sandbox.demo.pager_act import PAGER
from service.sandbox.demo.sequence_act import SEQUENCES
from service.sandbox.demo.stage import (
    AUDIT,
    BILLING,
    FAST_GROUP,
    INVOICES,
    KILLED,
    PARCELS,
    PAYMENTS,
    READ,
    REFUNDS,
    SHIPMENTS,
    SLOW_GROUP,
    Stage,
)
from service.sandbox.demo.transaction_act import REJECTED_IN_TRANSACTION
from service.sandbox.demo.usual_act import USUAL

ROUNDS: Final = 3  # in a row, for whatever one round could show by chance


def _healthy(observed: Observation) -> str | None:
    last = observed.rounds[-ROUNDS:]
    quiet = [status for status in last if status.is_complete and not status.findings]
    lag = last[-1].lag(FAST_GROUP)
    if len(quiet) < ROUNDS or lag is None:
        return None
    return (
        f"{len(last[-1].partitions)} partitions in {ROUNDS} complete rounds, nothing found; "
        f"{FAST_GROUP} is {lag} offsets behind the LSO"
    )


def _falls_behind(observed: Observation) -> str | None:
    rounds = observed.rounds
    lags = [lag for status in rounds if (lag := status.lag(SLOW_GROUP)) is not None][-ROUNDS:]
    if len(lags) < ROUNDS or any(late <= early for early, late in pairwise(lags)):
        return None
    values = " → ".join(map(str, lags))
    return f"{SLOW_GROUP} lags {values} offsets, round by round; {FAST_GROUP} {observed.last.lag(FAST_GROUP)}"


def _blocks(observed: Observation) -> str | None:
    last = [status.partition(PAYMENTS) for status in observed.rounds[-ROUNDS:]]
    stable = {row.get("last_stable_offset") for row in last}
    spans = [row.get("open_span") or 0 for row in last]
    if len(last) < ROUNDS or len(stable) > 1 or spans != sorted(set(spans)) or not spans[0]:
        return None
    blocked = _stopped_at(observed.last, PAYMENTS, last[-1])
    if BILLING not in blocked:
        return None
    return (
        f"on {PAYMENTS} the LSO is at {stable.pop()}, the HWM went on to "
        f"{last[-1]['high_watermark']}: {spans[-1]} offsets held back; blocked: {', '.join(blocked)}"
    )


def _stopped_at(status: RoundStatus, topic: str, row: Row) -> list[str]:
    """Return the groups that have read up to the LSO of a topic's first partition."""
    return [
        name
        for name, group in status.groups.items()
        for commit in group["items"]
        if (commit["topic"], commit["partition"]) == (topic, 0)
        and commit["committed_offset"] == row["last_stable_offset"]
    ]


def _flows_again(observed: Observation) -> str | None:
    row, lag = observed.last.partition(PAYMENTS), observed.last.lag(BILLING)
    if row.get("open_span") != 0 or lag is None or lag > row["high_watermark"] // 2:
        return None
    return (
        f"the LSO is at the HWM again ({row['high_watermark']}); {BILLING} is {lag} offsets behind"
    )


def _hangs(observed: Observation) -> str | None:
    finding = observed.last.finding("transaction_hanging", PAYMENTS)
    if finding is None or finding["verdict"] != "breach":
        return None
    evidence = finding["evidence"]
    waiting = [group["group"] for group in evidence["blocked_groups"] if group["is_waiting"]]
    if BILLING not in waiting:
        return None
    return (
        f"{finding['severity']} transaction_hanging on {PAYMENTS}: producer {evidence['producer_id']} "
        f"({evidence['transactional_id']}, {evidence['state']} to its coordinator) from offset "
        f"{evidence['start_offset']} on; {evidence['open_span']} offsets held back; "
        f"blocked: {', '.join(waiting)}\n        repair: {evidence['repair']}"
    )


def _repaired(observed: Observation) -> str | None:
    if observed.last.finding("transaction_hanging", PAYMENTS) is not None:
        return None
    return _flows_again(observed)


def _runs_ahead(observed: Observation) -> str | None:
    row = observed.last.partition(AUDIT)
    if not row.get("unreplicated_span"):
        return None
    return (
        f"on {AUDIT} the LEO is {row['log_end_offset']}, the HWM {row['high_watermark']}: "
        f"{counted(row['unreplicated_span'], 'offset')} on broker 1 alone"
    )


def _is_found(rule: str, topic: str) -> Seen:
    def seen(observed: Observation) -> str | None:
        finding = observed.last.finding(rule, topic)
        if finding is None or finding["verdict"] != "breach":
            return None
        evidence = ", ".join(f"{k} {v}" for k, v in finding["evidence"].items() if v is not None)
        return f"{finding['severity']} {rule} on {topic}: {finding['reason']} ({evidence})"

    return seen


def _is_over(*rules: str, topic: str) -> Seen:
    def seen(observed: Observation) -> str | None:
        row, last = observed.last.partition(topic), observed.last
        is_open = any(last.finding(rule, topic) for rule in rules)
        if (
            is_open
            or row.get("unreplicated_span") is None
            or len(row["isr"]) < len(row["replicas"])
        ):
            return None
        return f"{' and '.join(rules)} ended; every replica of {topic} is in sync"

    return seen


def _moved_from(broker: int) -> Seen:
    def seen(observed: Observation) -> str | None:
        rows = [row for row in observed.last.partitions if broker in (row["replicas"] or ())]
        led = [row for row in rows if row["leader"] in (None, broker)]
        left = [row for row in rows if broker not in (row["isr"] or (broker,))]
        if led or len(left) < len(rows):
            return None
        epochs = {row["leader_epoch"] for row in rows if row["topic"] == READ}
        return (
            f"no partition is led by broker {broker} any more, and {len(left)} have one replica less "
            f"in sync; leader epochs of {READ}: {_join_epochs(epochs)}"
        )

    return seen


def _back(broker: int) -> Seen:
    def seen(observed: Observation) -> str | None:
        rows = [row for row in observed.last.partitions if broker in (row["replicas"] or ())]
        if not observed.last.is_calm(rows):
            return None  # a transaction that the crash has cost is an event, which stays
        return (
            f"broker {broker} is in sync again on all {len(rows)} partitions; nothing is wrong now"
        )

    return seen


def _join_epochs(values: set[int | None]) -> str:
    return ", ".join(sorted("unknown" if value is None else str(value) for value in values))


ACTS: Final = (
    Act(
        title="A healthy pipeline",
        steps=[
            Step(
                did="100 records a second through a transactional pipeline; every fifth aborts",
                seen=_healthy,
            )
        ],
    ),
    Act(
        title="A group that is too slow",
        steps=[
            Step(
                did=f"{SLOW_GROUP} joined; it reads a tenth of what is written",
                do=Stage.start_slow_group,
                seen=_falls_behind,
            )
        ],
    ),
    Act(
        title="An open transaction holds back the LSO",
        steps=[
            Step(
                did=f"a producer began a transaction on {PAYMENTS} and went silent; others write on",
                do=Stage.hold_transaction,
                seen=_blocks,
                limit_seconds=45,
            ),
            Step(did="it was aborted", do=Stage.end_transaction, seen=_flows_again),
        ],
    ),
    Act(
        title="A transaction hangs",
        steps=[
            Step(
                did=f"records of a transaction reached {PAYMENTS} that its coordinator knows nothing of",
                do=Stage.hang_transaction,
                seen=_hangs,
                limit_seconds=45,
            ),
            Step(
                did="the printed command was run, with Kafka's own tool",
                do=Stage.run_repair,
                seen=_repaired,
            ),
        ],
    ),
    Act(
        title="Followers freeze",
        steps=[
            Step(
                did=f"brokers 2 and 3, the followers of {AUDIT}, were frozen",
                do=Stage.freeze_followers,
                seen=_runs_ahead,
            ),
            Step(
                did="they stay frozen",
                seen=_is_found("high_watermark_stuck", AUDIT),
                limit_seconds=60,
            ),
            Step(
                did="they go on",
                do=Stage.thaw_followers,
                seen=_is_over("high_watermark_stuck", "partition_under_min_isr", topic=AUDIT),
                limit_seconds=45,
            ),
        ],
    ),
    Act(
        title="A broker dies and comes back",
        steps=[
            Step(
                did=f"broker {KILLED} was killed (SIGKILL)",
                do=Stage.kill_broker,
                seen=_moved_from(KILLED),
            ),
            Step(
                did=f"broker {KILLED} was started with its old data",
                do=Stage.start_broker,
                seen=_back(KILLED),
                limit_seconds=60,
            ),
        ],
    ),
    LOSS,
    SEQUENCES,
    REJECTED_IN_TRANSACTION,
    PAGER,
    USUAL,
)
GROUPS: Final = (FAST_GROUP, SLOW_GROUP, BILLING)
TOPICS: Final = ("orders", READ, PAYMENTS, AUDIT, INVOICES, PARCELS, REFUNDS, SHIPMENTS)
