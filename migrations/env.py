"""How Alembic runs a revision: each in a transaction of its own, on the connection it is given.

`service.storage.database.schema` gives the connection, which already holds the advisory lock and the
timeouts, and the tables to compare with.
"""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=context.config.attributes["metadata"],
    transaction_per_migration=True,
    compare_type=True,
    compare_server_default=True,
)
with context.begin_transaction():
    context.run_migrations()
