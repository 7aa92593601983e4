"""A process that stores rounds until it is killed; it prints the number of each one stored."""

from __future__ import annotations

import sys
from pathlib import Path
from uuid import uuid4

from rules.verdict import Verdict
from service.storage.database import schema
from service.storage.database.engine import open_database
from service.storage.rounds.rounds import store_rounds
from tests.integration.storage.given import Story


def write(directory: Path) -> None:
    """Open the finding of a topic of its own in every round."""
    database = open_database(None, directory)
    schema.upgrade(database.engine)
    story, topics, number = Story(database.engine, writer=uuid4()), {}, 0
    while True:
        number += 1
        topics[f"topic-{number}"] = Verdict.BREACH
        store_rounds(database.engine, [story.round(topics)])
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
