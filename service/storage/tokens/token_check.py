"""Verifies the secrets of API tokens in the database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Engine

from service.storage.tokens import tokens
from service.storage.tokens.tokens import Grant


class StoredTokens:
    """The tokens that were created with `tidemark token`."""

    def __init__(self, engine: Callable[[], Engine], utc_now: Callable[[], datetime]) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered
        self._utc_now = utc_now

    def verify(self, secret: str) -> Grant | None:
        """Return the grant of a secret, None if it is unknown, revoked or expired.

        Raises:
            StoreError: the database is away.
        """
        token = tokens.verify(self._engine(), secret, self._utc_now())
        return None if token is None else Grant(token.name, token.scopes)
