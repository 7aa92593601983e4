"""The permissions that Tidemark needs in a cluster, declared once: for docs/permissions.md and `tidemark doctor`.

Tidemark only reads: no permission here changes anything in a cluster. A permission on a topic, a group
or a transactional id is needed on every one that is observed, unless `name` says which one.
Source: the authorization of each request in `KafkaApis` of the broker; KIP-664, KIP-430, KIP-290.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from rules.facts.identity import CONSUMER_OFFSETS, TRANSACTION_STATE


class Operation(StrEnum):
    """An operation of Kafka's ACLs."""

    DESCRIBE = "DESCRIBE"
    DESCRIBE_CONFIGS = "DESCRIBE_CONFIGS"
    READ = "READ"


class ResourceType(StrEnum):
    """A kind of resource of Kafka's ACLs."""

    CLUSTER = "Cluster"
    TOPIC = "Topic"
    GROUP = "Group"
    TRANSACTIONAL_ID = "TransactionalId"


# Operations that Kafka's authorizer allows to whoever may do this one on the same resource.
INCLUDES: Final[Mapping[Operation, Operation]] = MappingProxyType(
    {Operation.READ: Operation.DESCRIBE}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededPermission:
    """One permission, what it is needed for, and what is missing without it."""

    key: str  # lasting: in the JSON of `tidemark doctor`
    operation: Operation
    resource: ResourceType
    name: str | None = None  # of one topic; None: every resource that is observed
    requests: tuple[str, ...]  # Kafka's names of the requests that need it
    without: str  # for a person: what is missing, one line of Markdown
    rules: tuple[str, ...] = ()  # ids of the rules that are UNKNOWN, or judge less, without it

    @property
    def title(self) -> str:
        """Return it as Kafka's documentation writes it: "READ on Topic __consumer_offsets"."""
        name = "" if self.name is None else f" {self.name}"
        return f"{self.operation} on {self.resource}{name}"


# As lines and gaps name what is missing.
TOPIC_CONFIGS: Final = f"{Operation.DESCRIBE_CONFIGS} on {ResourceType.TOPIC}"
BROKER_CONFIGS: Final = f"{Operation.DESCRIBE_CONFIGS} on {ResourceType.CLUSTER}"

_GROUP_RULES: Final = (
    "committed_beyond_log_end",
    "consumer_data_expired",
    "consumer_group_rebalancing",
    "consumer_group_rewound",
    "consumer_group_stalled",
    "consumer_lag_unusual",
    "consumer_partitions_unowned",
    "lag_objective_burning",
    "read_committed_consumers_blocked",
)

NEEDED: Final = (
    NeededPermission(
        key="describe_cluster",
        operation=Operation.DESCRIBE,
        resource=ResourceType.CLUSTER,
        requests=("DescribeQuorum", "ListGroups", "DescribeAcls"),
        without="groups without a permission of their own and the controller are not seen: a gap. "
        "Whether transactional ids are hidden cannot be proven",
        rules=("controller_absent", "controller_moves_often", "transaction_hanging"),
    ),
    NeededPermission(
        key="describe_topics",
        operation=Operation.DESCRIBE,
        resource=ResourceType.TOPIC,
        requests=(
            "Metadata",
            "DescribeTopicPartitions",
            "ListOffsets",
            "OffsetForLeaderEpoch",
            "OffsetFetch",
            "ConsumerGroupDescribe",
        ),
        without="the topic is not seen, and nothing about it is judged; requested by name, it is a gap",
    ),
    NeededPermission(
        key="describe_consumer_offsets",
        operation=Operation.DESCRIBE,
        resource=ResourceType.TOPIC,
        name=CONSUMER_OFFSETS,
        requests=("Metadata",),
        without="for a group that two brokers list neither answer is used, with a gap",
        rules=_GROUP_RULES,
    ),
    NeededPermission(
        key="read_consumer_offsets",
        operation=Operation.READ,
        resource=ResourceType.TOPIC,
        name=CONSUMER_OFFSETS,
        requests=("Fetch",),
        without="a group that was deleted and created again within a round may be taken for one that was "
        "reset; whether groups commit outside of their transactions is not seen, with a gap",
        rules=("consumer_group_rewound",),
    ),
    NeededPermission(
        key="describe_topic_configs",
        operation=Operation.DESCRIBE_CONFIGS,
        resource=ResourceType.TOPIC,
        requests=("DescribeConfigs",),
        without="`min_insync_replicas` is `null`, with a gap; unclean elections count as allowed",
        rules=(
            "exactly_once_posture",
            "partition_under_min_isr",
            "records_possibly_lost",
            "unclean_leader_election",
        ),
    ),
    NeededPermission(
        key="describe_broker_configs",
        operation=Operation.DESCRIBE_CONFIGS,
        resource=ResourceType.CLUSTER,
        requests=("DescribeConfigs",),
        without="settings of brokers are UNKNOWN, with a gap",
        rules=("exactly_once_posture",),
    ),
    NeededPermission(
        key="describe_groups",
        operation=Operation.DESCRIBE,
        resource=ResourceType.GROUP,
        requests=(
            "DescribeGroups",
            "ConsumerGroupDescribe",
            "OffsetFetch",
            "ShareGroupDescribe",
            "DescribeShareGroupOffsets",
            "StreamsGroupDescribe",
        ),
        without="members and commits are missing, with a gap",
        rules=_GROUP_RULES,
    ),
    NeededPermission(
        key="read_topics",
        operation=Operation.READ,
        resource=ResourceType.TOPIC,
        requests=("Fetch", "DescribeProducers"),
        without="`nothing_to_read` is `null`, who has a transaction open on it and whether its producers are "
        "idempotent is not seen: gaps",
        rules=(
            "consumer_group_stalled",
            "read_committed_consumers_blocked",
            "sequence_gap_loss",
            "sequence_gap_reordering",
            "transaction_hanging",
            "transaction_marker_stuck",
        ),
    ),
    NeededPermission(
        key="describe_transactional_ids",
        operation=Operation.DESCRIBE,
        resource=ResourceType.TRANSACTIONAL_ID,
        requests=("ListTransactions", "DescribeTransactions"),
        without="Kafka leaves out, without an error, what may not be described: no transaction whose "
        "producer no coordinator lists is called hanging: it is UNKNOWN (`permission_unproven`)",
        rules=("transaction_hanging", "transaction_marker_stuck", "transaction_overdue"),
    ),
    NeededPermission(
        key="describe_transaction_state",
        operation=Operation.DESCRIBE,
        resource=ResourceType.TOPIC,
        name=TRANSACTION_STATE,
        requests=("Metadata",),
        without="which broker coordinates which transactional id is not known, with a gap: whether every "
        "coordinator has answered cannot be proven",
        rules=("transaction_hanging",),
    ),
    NeededPermission(
        key="read_transaction_state",
        operation=Operation.READ,
        resource=ResourceType.TOPIC,
        name=TRANSACTION_STATE,
        requests=("Fetch",),
        without="durations, commits, aborts, costs and fenced producers are not known, with a gap; "
        "`kafka.transaction_log = false` does without",
        rules=(
            "producer_fenced",
            "transaction_abort_ratio_high",
            "coordinator_slow",
            "transaction_too_small",
        ),
    ),
)

BEGIN: Final = (
    "<!-- Generated from rules/facts/permissions.py by `make golden`; a test compares. -->\n"
)
END: Final = "<!-- End of what is generated. -->\n"


def with_permissions(page: str) -> str:
    """Return docs/permissions.md with its table made of this declaration; its prose stays."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    rows = "".join(map(_row, NEEDED))
    table = f"| permission | for the requests | without it | rules that know less |\n|---|---|---|---|\n{rows}"
    return f"{head}{BEGIN}\n{table}\n{END}{tail}"


def _row(needed: NeededPermission) -> str:
    name = "" if needed.name is None else f" `{needed.name}`"
    rules = ", ".join(f"[{rule}](rules/{rule}.md)" for rule in needed.rules)
    permission = f"{needed.operation} on {needed.resource}{name}"
    return f"| {permission} | {', '.join(needed.requests)} | {needed.without} | {rules} |\n"
