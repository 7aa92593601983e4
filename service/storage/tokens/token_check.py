"""Tells what the secret of an API token allows, by the database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Engine

from service.storage.tokens import tokens
from service.storage.tokens.tokens import Grant


class StoredTokens:
    """The tokens that were made with `tidemark token`."""

    def __init__(self, engine: Callable[[], Engine], utc_now: Callable[[], datetime]) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered
        self._utc_now = utc_now

    def verify(self, secret: str) -> Grant | None:
        """Return whose a secret is, None if it is no token's or was revoked.

        Raises:
            StoreError: the database is away.
        """
        found = tokens.verify(self._engine(), secret, self._utc_now())
        return None if found is None else Grant(found.name, found.scopes)
