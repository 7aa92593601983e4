"""Lines of Kafka's formatter of the transaction log: what a coordinator wrote about a transactional id.

There are three forms: `id::TransactionMetadata(... state=Ongoing ...)` up to Kafka 4.0, JSON or the same with
`transactionStatus` as a number from 4.1 to 4.3, and with its name from 4.4.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from rules.facts.application_log import TransactionLogged

MARKS: Final = (
    b"TransactionMetadata(",
    b"transactionStatus",
    b"::NULL",
    b"::null",
    b"transaction_metadata::",
    b'{"transactionalId"',
    b'"transactionalId": "',
)
STATES: Final = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
    "PrepareEpochFence",
)  # fmt: skip
MOST_PARTITIONS: Final = 200
_BY_FORM: Final = {state.replace("_", "").lower(): state for state in STATES}
_KEY: Final = re.compile(r"(?P<id>\S{1,500}?)::(?:TransactionMetadata\(|null|\{)")
_FIELD: Final = re.compile(r"(?P<name>[a-zA-Z]{3,40})(?:= ?|:)(?P<value>-?[\w.-]{1,300})")
_PARTITIONS: Final = re.compile(
    r"(?:topicPartitions|transactionPartitions|partitions)=(?:[A-Za-z]{0,20}[\[({])?(?P<list>[^\])}]{0,20000})"
)
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}-\d{1,9}")
_LISTED: Final = re.compile(
    r"topic='?(?P<topic>[a-zA-Z0-9._-]{1,249})'?, partitionIds=\[(?P<ids>[\d, ]{0,5000})"
)


@dataclass(frozen=True, slots=True)
class _Fields:
    transactional_id: str | None
    values: Mapping[str, Any]
    partitions: tuple[str, ...]
    is_tombstone: bool = False  # the coordinator forgot the id


def transaction_of(text: str, source: str, line: int) -> TransactionLogged | None:
    """Return the state that a line of the formatter holds; None: it is no such line, or is cut."""
    fields = _from_json(text) or _from_text(text)
    if fields is None or not fields.transactional_id:
        return None
    values = fields.values
    state = _state(_any(values, "transactionStatus", "transactionState", "state"))
    if state is None and not fields.is_tombstone:
        return None
    return TransactionLogged(
        source=source,
        line=line,
        transactional_id=fields.transactional_id,
        state=state,
        producer_id=_int(values.get("producerId")),
        producer_epoch=_int(values.get("producerEpoch")),
        timeout_ms=_int(_any(values, "transactionTimeoutMs", "txnTimeoutMs")),
        partitions=fields.partitions,
        started_at=_time(_any(values, "transactionStartTimestampMs", "txnStartTimestamp")),
        updated_at=_time(
            _any(values, "transactionLastUpdateTimestampMs", "txnLastUpdateTimestamp")
        ),
    )


def _from_json(text: str) -> _Fields | None:
    begin = text.find("{")
    if begin < 0 or '"' not in text:
        return None
    try:
        document = json.loads(text[begin:])
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    key, value = _data(document.get("key")), _data(document.get("value"))
    if not key and "transactionStatus" not in document:
        return None
    if key and document.get("value", key) is None:
        return _Fields(str(key.get("transactionalId") or ""), {}, (), is_tombstone=True)
    values = value or {
        name: item for name, item in document.items() if name not in ("key", "value")
    }
    name = key.get("transactionalId") or document.get("transactionalId")
    listed = values.get("transactionPartitions") or ()
    partitions = tuple(
        f"{item.get('topic')}-{number}"
        for item in listed
        if isinstance(item, dict)
        for number in item.get("partitionIds") or ()
    )[:MOST_PARTITIONS] if isinstance(listed, list) else ()  # fmt: skip
    return _Fields(str(name) if name else None, values, partitions)


def _data(part: object) -> Mapping[str, Any]:
    if not isinstance(part, dict):
        return {}
    data = part.get("data", part)
    return data if isinstance(data, dict) else {}


def _from_text(text: str) -> _Fields | None:
    key = _KEY.search(text)
    values = {match["name"]: match["value"] for match in _FIELD.finditer(text)}
    name = None if key is None else key["id"]
    if name is None:
        name = values.get("transactionalId")
    if name is None:
        return None
    is_tombstone = key is not None and text[key.start() :].startswith(f"{key['id']}::null")
    if is_tombstone:
        return _Fields(name, {}, (), is_tombstone=True)
    return _Fields(name, values, _partitions(text))


def _partitions(text: str) -> tuple[str, ...]:
    listed = [
        f"{match['topic']}-{number.strip()}"
        for match in _LISTED.finditer(text)
        for number in match["ids"].split(",")
        if number.strip()
    ]
    match = _PARTITIONS.search(text)
    names = listed or ([] if match is None else _NAME.findall(match["list"]))
    return tuple(names[:MOST_PARTITIONS])


def _any(values: Mapping[str, Any], *names: str) -> Any:
    return next((values[name] for name in names if name in values), None)


def _state(value: object) -> str | None:
    number = _int(value)
    if number is not None:
        return STATES[number] if 0 <= number < len(STATES) else None
    return _BY_FORM.get(str(value).replace("_", "").lower())


def _int(value: object) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None


def _time(value: object) -> datetime | None:
    number = _int(value)
    if number is None or number < 0:
        return None
    try:
        return datetime.fromtimestamp(number / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
