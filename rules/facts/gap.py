"""A gap: something that a round should have seen and did not, with its cause.

A gap is a value, not an error. It names what is missing and why, so that a reader of a snapshot
can distinguish "nothing there" from "could not be observed".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rules.facts.identity import BrokerId


class GapCause(StrEnum):
    """Why something could not be seen."""

    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    NOT_AUTHORIZED = "not_authorized"
    UNSUPPORTED = "unsupported"  # the broker is older than the request needs
    NO_LEADER = "no_leader"
    LEADER_CHANGING = "leader_changing"  # the broker asked is not, or not yet, the leader
    COORDINATOR_MOVING = "coordinator_moving"  # loading, moving or not available
    GONE = "gone"  # deleted between two requests of the round, or re-created
    IMPOSSIBLE_VALUE = "impossible_value"  # an answer that cannot be true, such as a negative lag
    UNREADABLE = "unreadable"  # an answer that could not be decoded
    LIMIT = "limit"  # a limit of ours was reached first
    BROKER_ERROR = "broker_error"  # any other error code


class GapScope(StrEnum):
    """What is missing: the subjects of which an absence proves nothing."""

    CLUSTER = "cluster"  # a broker, the controller, a permission on the whole cluster
    PLACEMENT = "placement"  # topics and where their partitions live
    CONFIGS = "configs"  # settings of topics and brokers, levels of features
    GROUPS = "groups"  # groups that exist and are not listed
    MEMBERS = "members"  # state and members of groups that are listed
    COMMITS = "commits"  # committed offsets; of one group where the gap names it
    OFFSETS = "offsets"  # what the leader of a partition answers, and lags measured against it
    REPLICAS = "replicas"  # log ends of followers, eligible leader replicas
    READABLE = "readable"  # whether there is anything to read behind a commit
    TRANSACTIONS = "transactions"  # what a coordinator knows of transactions
    PRODUCERS = "producers"  # who has a transaction open on a partition
    TRANSACTION_LOG = "transaction_log"  # how transactions ended
    EPOCHS = "epochs"  # where leader epochs ended
    BATCHES = "batches"  # batch headers of producers that were asked about
    BATCH_SAMPLES = "batch_samples"  # sampled batch headers: which clients write and commit how
    BROKER_LOG = "broker_log"  # lines of the brokers' logs
    SCRAPES = "scrapes"  # metrics of brokers and clients


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """One thing that is missing from a snapshot."""

    what: str  # for a person: "offsets of 3 partitions led by broker 2 (orders-0, ...)"
    why: str  # for a person: "broker 2 (127.0.0.1:9093) did not answer within 5.0 s"
    cause: GapCause
    scope: GapScope
    broker_id: BrokerId | None = None
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
