"""A migrated database for each test, on the server that the storage tests use."""

from __future__ import annotations

from tests.integration.storage.conftest import embedded, folder, new_database

__all__ = ["embedded", "folder", "new_database"]
