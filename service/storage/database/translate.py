"""Translates database errors into `StoreError`, only here; messages never contain values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from rules.errors import StoreError

# Classes and codes of PostgreSQL's appendix A that are worth a retry: connection, read-only (a
# standby before its promotion), transaction rollback, resources, lock not available, cancelled by a
# timeout, shutting down or starting.
RETRYABLE: Final = ("08", "25006", "40", "53", "55P03", "57014", "57P")
# Of what was to be stored: cardinality, data, constraints but foreign keys (which are no row's own), limits.
OF_VALUES: Final = ("21", "22", "23502", "23505", "23514", "54")
# The driver itself rejects a value, as a text with NUL.
OF_DRIVER: Final = (psycopg.DataError, psycopg.NotSupportedError, psycopg.ProgrammingError)
REJECTED: Final = ("authentication failed", "no password supplied", "pg_hba.conf", "does not exist")


@contextmanager
def translate_errors(doing: str) -> Iterator[None]:
    """Raise errors of SQLAlchemy or the driver as `StoreError` whose message begins with `doing`."""
    try:
        yield
    except DBAPIError as exc:
        raise _store_error(doing, exc.orig or exc) from exc
    except psycopg.Error as exc:  # of COPY, which goes past SQLAlchemy
        raise _store_error(doing, exc) from exc
    except PoolTimeoutError as exc:
        raise StoreError(f"{doing}: no free connection in time", retryable=True) from exc
    except SQLAlchemyError as exc:
        raise StoreError(f"{doing}: {type(exc).__name__}", retryable=False) from exc


def _store_error(doing: str, error: BaseException) -> StoreError:
    return StoreError(
        f"{doing}: {_first_line(error)}",
        retryable=_is_retryable(error),
        is_of_values=_is_of_values(error),
    )


def _is_of_values(error: BaseException) -> bool:
    state = getattr(error, "sqlstate", None)
    return isinstance(error, psycopg.DataError) if state is None else state.startswith(OF_VALUES)


def _is_retryable(error: BaseException) -> bool:
    state = getattr(error, "sqlstate", None)
    if state is not None:
        return str(state).startswith(RETRYABLE)
    if isinstance(error, OF_DRIVER):
        return False
    # A failed connection has no code: only the text of the server shows a rejection.
    text = str(error)
    return not any(word in text for word in REJECTED)


def _first_line(error: BaseException) -> str:
    """Return the first meaningful line of the driver's message; SQL and parameters stay out."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in lines:
        if "FATAL:" in line:
            return line.split("FATAL:", 1)[1].strip()
    return lines[0] if lines else type(error).__name__
