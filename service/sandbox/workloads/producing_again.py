"""Produces the records of a file of `log diff --records` again: all of them, or none.

One transaction holds them, each at its partition, with its key, value, headers and timestamp. docs/log-files.md
has the same as a program for other clusters than a sandbox: Tidemark itself writes to none.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

from rules.errors import SandboxError
from service.sandbox.workloads.clients import CLIENT_ERRORS, QUIET, text_of

TIMEOUT_SECONDS: Final = 60.0
MOST_QUEUED: Final = 1_000_000  # records


def produce_again(bootstrap_servers: str, path: Path) -> int:
    """Produce the records of a file; return how many they are.

    Raises:
        SandboxError: the brokers did not take them; then they took none.
    """
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "transactional.id": f"produce-again-{path.stem}",
            "queue.buffering.max.messages": MOST_QUEUED,
            "log_level": QUIET,
        }
    )
    lines = path.read_text(encoding="utf-8").splitlines()
    try:
        producer.init_transactions(TIMEOUT_SECONDS)
        producer.begin_transaction()
        for line in lines:
            _produce(producer, json.loads(line))
        producer.commit_transaction(TIMEOUT_SECONDS)
    except CLIENT_ERRORS as exc:
        raise SandboxError(f"the records of {path} were not produced: {text_of(exc)}") from exc
    return len(lines)


def content(fields: Mapping[str, Any], name: str) -> bytes | None:
    """Return the bytes of a field of the file as they were."""
    text = fields[name]
    if text is None:
        return None
    is_binary = fields[f"{name}_encoding"] == "base64"
    return base64.b64decode(text) if is_binary else str(text).encode()


def _produce(producer: Any, record: Mapping[str, Any]) -> None:
    producer.produce(
        record["topic"],
        partition=record["partition"],
        key=content(record, "key"),
        value=content(record, "value"),
        headers=[(header["name"], content(header, "value")) for header in record["headers"]],
        timestamp=record["timestamp_ms"],
    )
