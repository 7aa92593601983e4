"""What one error means: which error of a chain counts, and what the client's own words change about the table.

A class alone does not decide: the request that failed does, the library, and above all what the client says that it
does now. "Transiting to fatal error state" is fatal whatever the class, and "retrying" is harmless.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rules.exceptions.connecting import BARE, CONNECTING, OTHER_TIMEOUTS
from rules.exceptions.consuming import CONSUMER_TIMEOUTS, CONSUMING
from rules.exceptions.frameworks import CONTINUED, FRAMEWORKS, REPORTED
from rules.exceptions.meaning import NOBODY, Ability, Case, Meaning, Records, Role, Table
from rules.exceptions.producing import PRODUCER_TIMEOUTS, PRODUCING
from rules.exceptions.replicas import REPLICAS
from rules.exceptions.sequences import OUT_OF_ORDER, OUT_OF_ORDER_FATAL, SEQUENCES
from rules.exceptions.transaction_calls import CALLS
from rules.exceptions.transactions import TRANSACTIONS
from rules.facts.application_log import (
    ApplicationError,
    Client,
    Framework,
    Operation,
    Outcome,
    Part,
    Thrown,
)

TIMEOUTS: Final[tuple[Case, ...]] = (*PRODUCER_TIMEOUTS, *CONSUMER_TIMEOUTS, *OTHER_TIMEOUTS)
TABLE: Final[Table] = {
    **CONNECTING,
    **REPLICAS,
    **FRAMEWORKS,
    **CONSUMING,
    **PRODUCING,
    **SEQUENCES,
    **TRANSACTIONS,
    **CALLS,
    "TIMEOUT": TIMEOUTS,
    "_TIMED_OUT": TIMEOUTS,
    "SERIALIZATION": PRODUCING["_VALUE_SERIALIZATION"],
}
# They surround the error that counts.
WRAPPERS: Final = frozenset({
    "KAFKA", "KAFKA_RETRIABLE", "KAFKA_TXN_REQUIRES_ABORT", "RETRIABLE", "STREAMS", "CONNECT", "FLINK_KAFKA", "DATA",
    "TASK_MIGRATED", "LISTENER_EXECUTION_FAILED", "BATCH_LISTENER_FAILED", "KAFKA_PRODUCER",
    "_CONNECT_TASK_FAILED", "_SPRING_SEEK", "_SPRING_STOPPED", "_CONNECT_FLUSH_FAILED",
    "_CONNECT_COMMIT_FAILED", "_FLINK_SEND_FAILED", "TRANSACTION_ABORTABLE", "_STREAMS_DIED",
})  # fmt: skip
# They count although they have a cause: records are gone, or a framework has dealt with it.
DECISIVE: Final = frozenset({
    "_STREAMS_CONTINUED", "_RECORD_SKIPPED", "_FLINK_DATA_LOST", "TASK_CORRUPTED", "_SPRING_GAVE_UP",
    "_CALL_TO_REPEAT", "_AUTHORIZATION_ABORTABLE", "_VERIFICATION_FAILED", "_CONNECT_TOLERANCE",
    "_CONNECT_REPORTED", "_NO_SUCH_PARTITION",
    "LOG_TRUNCATION", "_LOG_TRUNCATION", "RETRIABLE_COMMIT_FAILED", "_DELIVERIES_FAILED", "_SPRING_FENCED",
})  # fmt: skip
# Frameworks that process again what was not committed, so that a failed record is not lost.
REPEATING: Final = (Framework.STREAMS, Framework.FLINK)
REPEATED: Final = "With at-least-once, all since the last commit or checkpoint is processed again; neither with exactly-once."
OF_TRANSACTIONS: Final = frozenset(TRANSACTIONS | CALLS) - {
    "INVALID_PRODUCER_EPOCH",
    "_ERROR_STATE",
    "_PRODUCER_INITIALIZED",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What an error means where it was."""

    event: ApplicationError
    error: str  # the one of the chain that counts
    thrown: Thrown
    meaning: Meaning
    role: Role
    idempotent: Ability | None
    transactional: Ability | None
    records: Records
    condition: str
    framework: Meaning | None = None  # what a framework around it does about it


def judge(
    event: ApplicationError,
    *,
    is_transactional: bool | None = None,
    is_librdkafka: bool | None = None,
) -> Judged | None:
    """Return what an error means; None: no error of it is known.

    `is_transactional` and `is_librdkafka` are what other lines of the same client say.
    """
    thrown = decisive(event)
    if thrown is None:
        return None
    meaning = _meaning(thrown, event)
    if meaning is None:
        return None
    has_transactions = event.is_transactional if is_transactional is None else is_transactional
    if thrown.error in OF_TRANSACTIONS or meaning.java[0] is None is not meaning.java[1]:
        has_transactions = True
    client = Client.LIBRDKAFKA if is_librdkafka and event.client is None else event.client
    idempotent, transactional = _abilities(
        meaning, event, client, is_transactional=has_transactions
    )
    records, condition = _records(meaning, event, is_transactional=has_transactions)
    return Judged(
        event=event,
        error=thrown.error,
        thrown=thrown,
        meaning=meaning,
        role=_role(meaning, event),
        idempotent=idempotent,
        transactional=transactional,
        records=records,
        condition=condition,
        framework=_framework(event, meaning),
    )


def decisive(event: ApplicationError) -> Thrown | None:
    """Return the error of a chain that counts: the innermost cause that is known and no mere consequence."""
    thrown_errors = [thrown for thrown in event.chain if thrown.error in TABLE]
    for thrown in thrown_errors:
        if thrown.error in DECISIVE:
            return thrown
    inner = [thrown for thrown in reversed(thrown_errors) if thrown.error not in WRAPPERS]
    causes = [thrown for thrown in inner if TABLE[thrown.error][-1].meaning.role is not Role.CONSEQUENCE]  # fmt: skip
    named = [thrown for thrown in reversed(thrown_errors) if thrown.error != "KAFKA"]
    return next(iter([*causes, *inner, *named, *thrown_errors]), None)


def _meaning(thrown: Thrown, event: ApplicationError) -> Meaning | None:
    operation = thrown.operation or _operation_around(thrown, event)
    cases = TABLE.get(thrown.error, ())
    return next((case.meaning for case in cases if _holds(case, operation, event)), None)


def _holds(case: Case, operation: Operation | None, event: ApplicationError) -> bool:
    pairs = (
        (case.part, event.part),
        (case.client, event.client),
        (case.framework, event.framework),
        (case.outcome, event.outcome),
    )
    return (
        (not case.operations or operation in case.operations)
        and all(value is None or value is own for value, own in pairs)
        and (case.before is None or (event.release is not None and event.release < case.before))
        and (case.since is None or (event.release is not None and event.release >= case.since))
    )


def _operation_around(thrown: Thrown, event: ApplicationError) -> Operation | None:
    """Return what failed by the exception around: unless that one only repeats an earlier error."""
    errors = [each.error for each in event.chain]
    is_echo = "_ERROR_STATE" in errors and thrown.error != "_ERROR_STATE"
    return None if is_echo else event.operation


def _abilities(
    meaning: Meaning,
    event: ApplicationError,
    client: Client | None,
    *,
    is_transactional: bool | None,
) -> tuple[Ability | None, Ability | None]:
    """Return what a plain idempotent and a transactional producer can do: the client's own words first."""
    if meaning.part is Part.CONSUMER and meaning.java == NOBODY:
        return None, None
    if event.part is Part.CONSUMER and client is not Client.BROKER and not is_transactional:
        return None, None
    idempotent, transactional = meaning.java
    if client is Client.LIBRDKAFKA and meaning.librdkafka is not None:
        idempotent, transactional = meaning.librdkafka
    if client is Client.BROKER and meaning.broker is not None:
        idempotent, transactional = meaning.broker
    if event.outcome is Outcome.RETRYING:
        idempotent = None if idempotent is None else Ability.RETRIABLE
        transactional = None if transactional is None else Ability.RETRIABLE
    elif event.outcome is Outcome.ABORTABLE:
        transactional = Ability.ABORT
    elif event.outcome is Outcome.FATAL:
        idempotent, transactional = Ability.FATAL, Ability.FATAL
    return (None if is_transactional else idempotent), transactional


def _records(
    meaning: Meaning, event: ApplicationError, *, is_transactional: bool | None
) -> tuple[Records, str]:
    if event.outcome is Outcome.RETRYING:
        if meaning.while_retried is Records.NEITHER:
            return Records.NEITHER, "As long as the client tries again; see what follows."
        return meaning.while_retried, meaning.condition
    if (
        event.client is Client.BROKER
        and meaning.broker is not None
        and meaning.broker[0] is meaning.broker[1]
    ):
        return meaning.while_retried, "While clients try again; see what they say."
    is_aborted = is_transactional or event.outcome is Outcome.ABORTABLE
    if is_aborted and meaning.in_transaction is not None:
        return meaning.in_transaction, meaning.condition_in_transaction or meaning.condition
    if event.framework in REPEATING and _is_repeated(meaning):
        return Records.DUPLICATED, REPEATED
    return meaning.records, meaning.condition


def _is_repeated(meaning: Meaning) -> bool:
    """Whether a record that failed so is processed again by a framework that goes back to its last commit."""
    if meaning in (OUT_OF_ORDER, OUT_OF_ORDER_FATAL, CONTINUED):
        return False
    is_dropped = meaning.records is Records.LOST and meaning.java[0] is not None
    return is_dropped or meaning.in_transaction is not None


def _role(meaning: Meaning, event: ApplicationError) -> Role:
    if event.outcome is Outcome.RETRYING and meaning.role is not Role.CONSEQUENCE:
        return Role.HARMLESS
    if event.outcome in (Outcome.ABORTABLE, Outcome.FATAL) and meaning.role is Role.HARMLESS:
        return Role.CAUSE
    return meaning.role


def _framework(event: ApplicationError, meaning: Meaning) -> Meaning | None:
    """Return what the framework around an error does, if the chain says that."""
    if meaning is REPORTED:
        return None
    for thrown in event.chain:
        cases = FRAMEWORKS.get(thrown.error)
        if cases is not None and cases[0].meaning is not meaning:
            return cases[0].meaning
    return None


def is_bare(judged: Judged) -> bool:
    """Whether only a class without a meaning of its own is known."""
    return judged.meaning is BARE
