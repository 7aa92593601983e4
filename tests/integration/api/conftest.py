"""A migrated database for each module, and the application on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from service.storage.database.server import EmbeddedServer
from tests.integration.api.given import Api
from tests.integration.storage.conftest import _databases, embedded

__all__ = ["embedded"]


@pytest.fixture(scope="module")
def engine(embedded: EmbeddedServer) -> Iterator[Engine]:
    for make in _databases(embedded):
        yield make()


@pytest.fixture
def api(engine: Engine) -> Api:
    """Give the API of a cluster that no other test knows, asked from the machine itself."""
    return Api.fresh(engine)
