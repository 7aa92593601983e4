"""Database errors become `StoreError`, here and nowhere else; a message never carries values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from rules.errors import StoreError

# Classes and codes of PostgreSQL's appendix A that another try may pass: connection, read-only (a
# standby before its promotion), transaction rollback, resources, lock not available, cancelled by a
# timeout, shutting down or starting.
RETRYABLE: Final = ("08", "25006", "40", "53", "55P03", "57014", "57P")
REJECTED: Final = ("authentication failed", "no password supplied", "pg_hba.conf", "does not exist")


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn what SQLAlchemy or the driver raises inside into a `StoreError` that begins with `doing`."""
    try:
        yield
    except DBAPIError as exc:
        said = exc.orig or exc
        raise StoreError(f"{doing}: {_told(said)}", retryable=_is_retryable(said)) from exc
    except psycopg.Error as exc:  # of COPY, which goes past SQLAlchemy
        raise StoreError(f"{doing}: {_told(exc)}", retryable=_is_retryable(exc)) from exc
    except PoolTimeoutError as exc:
        raise StoreError(f"{doing}: no free connection in time", retryable=True) from exc
    except SQLAlchemyError as exc:
        raise StoreError(f"{doing}: {type(exc).__name__}", retryable=False) from exc


def _is_retryable(said: BaseException) -> bool:
    state = getattr(said, "sqlstate", None)
    if state is not None:
        return str(state).startswith(RETRYABLE)
    # A failed connection carries no code: only what the server said in words tells a rejection.
    text = str(said)
    return not any(word in text for word in REJECTED)


def _told(said: BaseException) -> str:
    """Return the driver's first line that says something; SQL and parameters stay out."""
    lines = [line.strip() for line in str(said).splitlines() if line.strip()]
    for line in lines:
        if "FATAL:" in line:
            return line.split("FATAL:", 1)[1].strip()
    return lines[0] if lines else type(said).__name__
