"""Which failures of a database another try may mend, and that no value gets into a message."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors
from sqlalchemy.exc import DBAPIError, NoSuchTableError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from rules.errors import StoreError
from service.storage.database.translate import translate_errors


def told(error: Exception) -> StoreError:
    with pytest.raises(StoreError) as caught, translate_errors("it cannot be stored"):
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (errors.AdminShutdown("terminating connection"), True),
        (errors.CannotConnectNow("starting up"), True),
        (errors.DeadlockDetected("deadlock detected"), True),
        (errors.DiskFull("no space left"), True),
        (errors.LockNotAvailable("lock timeout"), True),
        (errors.QueryCanceled("statement timeout"), True),
        (errors.ReadOnlySqlTransaction("a standby"), True),
        (errors.CheckViolation("violates check constraint"), False),
        (errors.InsufficientPrivilege("permission denied for table"), False),
        (errors.UndefinedTable("relation does not exist"), False),
        (psycopg.OperationalError("the connection is lost"), True),
        (psycopg.OperationalError('FATAL:  database "x" does not exist'), False),
        (
            psycopg.OperationalError("connection failed: FATAL:  password authentication failed"),
            False,
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_what_another_try_may_mend(error: psycopg.Error, retryable: bool) -> None:  # noqa: FBT001  # a table's column
    assert told(DBAPIError("INSERT", {"secret": "s3cret"}, error)).retryable is retryable


@pytest.mark.parametrize(
    ("error", "is_of_values"),
    [
        (errors.CheckViolation("violates check constraint"), True),
        (errors.CardinalityViolation("a second time"), True),
        (errors.NumericValueOutOfRange("out of range"), True),
        (errors.ProgramLimitExceeded("index row size"), True),
        (psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"), True),
        (errors.ForeignKeyViolation("violates foreign key constraint"), False),
        (errors.InsufficientPrivilege("permission denied for table"), False),
        (errors.UndefinedColumn("column does not exist"), False),
        (errors.SerializationFailure("could not serialize access"), False),
        (errors.QueryCanceled("statement timeout"), False),
        (psycopg.OperationalError("the connection is lost"), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_what_is_rejected_for_its_values(error: psycopg.Error, is_of_values: bool) -> None:  # noqa: FBT001  # a table's column
    caught = told(DBAPIError("INSERT", {"secret": "s3cret"}, error))
    assert caught.is_of_values is is_of_values
    assert not (caught.is_of_values and caught.retryable)


def test_the_message_is_the_first_line_without_sql_and_values() -> None:
    error = errors.UniqueViolation("duplicate key value\nDETAIL:  Key (name)=(s3cret) exists.")
    message = str(told(DBAPIError("INSERT INTO t", {"name": "s3cret"}, error)))
    assert message == "it cannot be stored: duplicate key value"


def test_errors_without_a_driver() -> None:
    assert told(PoolTimeoutError("QueuePool limit")).retryable
    assert not told(NoSuchTableError("finding")).retryable


def test_other_errors_pass() -> None:
    with pytest.raises(KeyError), translate_errors("it cannot be stored"):
        raise KeyError("ours")
