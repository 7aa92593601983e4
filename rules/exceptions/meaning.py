"""The vocabulary of what an error means: for the records, and for the producer or consumer that got it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from rules.facts.application_log import Client, Framework, Operation, Outcome, Part, Release


class Ability(StrEnum):
    """What an instance of a client can still do after an error; None: the error does not concern it."""

    RETRIABLE = "retriable"  # the client repeats by itself, or the same call may be repeated
    FAILS = "fails"  # these records, or this call, failed for good; the instance goes on
    ABORT = "abort"  # the transaction has to be aborted, then the instance goes on
    FATAL = "fatal"  # the instance can only be closed


class Records(StrEnum):
    """What may have become of records; the condition says when."""

    NEITHER = "neither"  # neither lost nor duplicated
    LOST = "lost"
    DUPLICATED = "duplicated"
    UNKNOWN = "unknown"  # lost or duplicated, or neither: the line does not decide


class Role(StrEnum):
    """The place of an error in an incident."""

    CAUSE = "cause"
    CONSEQUENCE = "consequence"  # an error that came before it is the reason
    HARMLESS = "harmless"  # the client deals with it by itself


class Next(StrEnum):
    """The command that says more."""

    TRANSACTION = "transaction"  # what the coordinator knows of a transactional id
    TRANSACTION_LOG = "transaction_log"  # what it wrote about it
    LOSS = "loss"  # whether offsets of a partition are lost
    SEQUENCE = "sequence"  # what the broker's log says of a rejected batch
    GROUP = "group"
    LAG = "lag"
    PARTITION = "partition"  # leader and ISR
    TOPIC = "topic"  # whether it exists, and its settings
    ACLS_OF_TOPIC = "acls_of_topic"
    ACLS_OF_GROUP = "acls_of_group"
    ACLS_OF_TRANSACTION = "acls_of_transaction"
    CONNECTION = "connection"
    HANGING = "hanging"


Pair = tuple[
    Ability | None, Ability | None
]  # of a plain idempotent producer, of a transactional one

RETRIABLE: Final = Ability.RETRIABLE
FAILS: Final = Ability.FAILS
ABORT: Final = Ability.ABORT
FATAL: Final = Ability.FATAL
NOBODY: Final[Pair] = (None, None)
BOTH_RETRIABLE: Final[Pair] = (RETRIABLE, RETRIABLE)
FAILS_OR_ABORT: Final[Pair] = (FAILS, ABORT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What an error means where no line of the client says more."""

    id: str  # lasting
    title: str
    explanation: str
    java: Pair  # where it reached the application
    librdkafka: Pair | None = None  # where it differs
    broker: Pair | None = None  # where only a broker's line shows it; default: as `java`
    records: Records
    condition: str
    in_transaction: Records | None = None  # where it differs in a transaction
    condition_in_transaction: str | None = None
    while_retried: Records = Records.NEITHER  # while the client says that it tries again
    action: str
    check: str
    next: tuple[Next, ...] = ()
    role: Role = Role.CAUSE
    part: Part | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """When an error has a meaning; an empty condition holds always."""

    meaning: Meaning
    operations: frozenset[Operation] = field(default_factory=frozenset)
    part: Part | None = None
    client: Client | None = None
    framework: Framework | None = None
    outcome: Outcome | None = None
    before: Release | None = None  # of a Java client that is older than this
    since: Release | None = None  # of a Java client of this release or a later one


Table = dict[str, tuple[Case, ...]]


def always(meaning: Meaning) -> tuple[Case, ...]:
    """Return the cases of an error that has one meaning."""
    return (Case(meaning=meaning),)


def when(
    meaning: Meaning,
    *operations: Operation,
    part: Part | None = None,
    client: Client | None = None,
    framework: Framework | None = None,
) -> Case:
    """Return a case for some operations."""
    return Case(
        meaning=meaning,
        operations=frozenset(operations),
        part=part,
        client=client,
        framework=framework,
    )


def table(*rows: tuple[Sequence[str], Sequence[Case]]) -> Table:
    """Return a table: each error with its cases, of which the first that holds counts."""
    return {error: tuple(cases) for errors, cases in rows for error in errors}
