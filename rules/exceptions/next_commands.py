"""The commands that say more about an error, with its names filled in; capital letters are for what the text lacks."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Final

from rules.exceptions.meaning import Next
from rules.facts.application_log import Names

OURS: Final = "--bootstrap-servers HOST:PORT"
KAFKAS: Final = "--bootstrap-server HOST:PORT"
FORMATTER: Final = "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"
FORMS: Final = {
    Next.TRANSACTION: f"tidemark tx show {{id}} {OURS}",
    Next.TRANSACTION_LOG: (
        f"kafka-console-consumer.sh {KAFKAS} --topic __transaction_state --from-beginning --timeout-ms 10000 "
        f"--formatter {FORMATTER} | grep -F -- {{id}} | tidemark explain -"
    ),
    Next.LOSS: "tidemark loss show {place}",
    Next.SEQUENCE: "tidemark sequence show {place}",
    Next.GROUP: "tidemark groups show {group}",
    Next.LAG: "tidemark lag {group}",
    Next.PARTITION: f"kafka-topics.sh {KAFKAS} --describe --topic {{topic}}",
    Next.TOPIC: f"kafka-topics.sh {KAFKAS} --describe --topic {{topic}}",
    Next.ACLS_OF_TOPIC: f"kafka-acls.sh {KAFKAS} --list --topic {{topic}}",
    Next.ACLS_OF_GROUP: f"kafka-acls.sh {KAFKAS} --list --group {{group}}",
    Next.ACLS_OF_TRANSACTION: f"kafka-acls.sh {KAFKAS} --list --transactional-id {{id}}",
    Next.CONNECTION: f"kafka-broker-api-versions.sh {KAFKAS}",
    Next.HANGING: f"tidemark tx hanging {OURS}",
}
# Where the text lacks the name: the list, in which it can be found.
LISTS: Final = {
    Next.TRANSACTION: f"tidemark tx ls {OURS}",
    Next.LOSS: "tidemark loss ls",
    Next.SEQUENCE: "tidemark sequence ls",
    Next.GROUP: "tidemark groups ls",
    Next.LAG: "tidemark lag",
    Next.PARTITION: f"kafka-topics.sh {KAFKAS} --describe --under-replicated-partitions",
}


def commands(kinds: Iterable[Next], names: Names) -> tuple[str, ...]:
    """Return the commands, each once."""
    return tuple(dict.fromkeys(command_of(kind, names) for kind in kinds))


def command_of(kind: Next, names: Names) -> str:
    """Return a command."""
    has_place = names.topic is not None and names.partition is not None
    values = {
        "id": names.transactional_id,
        "group": names.group,
        "topic": names.topic,
        "place": f"{names.topic}-{names.partition}" if has_place else None,
    }
    form = FORMS[kind]
    is_known = all(value is not None for name, value in values.items() if f"{{{name}}}" in form)
    if not is_known and kind in LISTS:
        return LISTS[kind]
    missing = {"id": "TRANSACTIONAL_ID", "group": "GROUP", "topic": "TOPIC"}
    return form.format_map(
        {
            name: missing.get(name, name) if value is None else shlex.quote(value)
            for name, value in values.items()
        }
    )
