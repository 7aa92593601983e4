"""Schema revisions (Alembic); a revision is frozen history and imports nothing of ours."""
