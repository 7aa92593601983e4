"""Lines of a broker's request log about producers: who initialised, who ended, who was fenced.

The logger `kafka.request.logger` writes each request as JSON where somebody has switched it on (DEBUG);
it names the client and its connection, as no other line does. Nearly all requests are others, so the
marks are what only these have. A line that is longer than what is read of one, such as a Produce request
of many partitions, is left out. Source: RequestConvertToJson (KIP-673), and lines of real 4.1 brokers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from collectors.broker_log.wording.fields import LineUnreadableError, compile_pattern
from collectors.broker_log.wording.line import Line
from rules.facts.broker_log import ClientInstance, ProducerRequest

INIT: Final = '"requestApiKeyName":"INIT_PRODUCER_ID"'
END: Final = '"requestApiKeyName":"END_TXN"'
OLD_EPOCH: Final = '"errorCode":47,"baseOffset":-1'  # of a partition in an answer to Produce
FENCED_PARTITION: Final = '"partitionErrorCode":90'  # of one in an answer to AddPartitionsToTxn
OLD_PARTITION: Final = '"partitionErrorCode":47'

_BEGINNING: Final = "Completed request:"
_ERRORS: Final[Mapping[int, str | None]] = {
    0: None,
    47: "INVALID_PRODUCER_EPOCH",
    90: "PRODUCER_FENCED",
}
_REQUESTS: Final[Mapping[str, str]] = {
    "INIT_PRODUCER_ID": "InitProducerId",
    "END_TXN": "EndTxn",
    "ADD_PARTITIONS_TO_TXN": "AddPartitionsToTxn",
    "PRODUCE": "Produce",
}
_CONNECTION: Final = compile_pattern(
    r".+:\d{1,5}-(?P<host>.+):(?P<port>\d{1,5})-\d{1,10}(?:-\d{1,20})?"
)
_INT16, _INT64 = 2**15 - 1, 2**63 - 1


def request(line: Line) -> ProducerRequest | None:
    """Read a request of a producer; None: it is not one of those, or it failed for another reason."""
    document = _document(line)
    if document is None:
        return None
    try:
        return _read(line, document)
    except (LookupError, TypeError, ValueError, AttributeError) as exc:
        raise LineUnreadableError(line.message) from exc


def _document(line: Line) -> Mapping[str, Any] | None:
    """Return the JSON of the line; None where it has none, or is cut short."""
    text = line.head + line.message
    start = text.find(_BEGINNING)
    if start < 0:
        return None
    try:
        document, _ = json.JSONDecoder().raw_decode(text, start + len(_BEGINNING))
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _read(line: Line, document: Mapping[str, Any]) -> ProducerRequest | None:
    header, body, answer = (document[name] for name in ("requestHeader", "request", "response"))
    name = _REQUESTS.get(str(header["requestApiKeyName"]))
    codes = set(_codes_of(name, answer))
    if name is None or not codes <= _ERRORS.keys() or _is_of_broker(body):
        return None
    error = next((_ERRORS[code] for code in sorted(codes, reverse=True)), None)
    if error is None and _is_ordinary(name, body):
        return None
    is_given = name == "InitProducerId" and error is None
    numbers = answer if is_given else body
    return ProducerRequest(
        origin=line.origin,
        request=name,
        error=error,
        transactional_id=_named(body, "transactionalId"),
        producer_id=_number(numbers, "producerId", _INT64),
        producer_epoch=_number(numbers, "producerEpoch", _INT16),
        is_commit=bool(body["committed"]) if name == "EndTxn" else None,
        is_own_epoch=name == "InitProducerId"
        and _number(body, "producerEpoch", _INT16) is not None,
        instance=_instance(document, header),
    )


def _codes_of(name: str | None, answer: Mapping[str, Any]) -> Iterator[int]:
    """Yield the error codes of an answer; those of other partitions beside a fenced one are left out."""
    if name == "Produce":
        parts = (part for topic in answer["responses"] for part in topic["partitionResponses"])
        yield from (47 for part in parts if part["errorCode"] == 47)
    elif name == "AddPartitionsToTxn":
        topics = answer.get("resultsByTopicV3AndBelow", ())
        parts = (part for topic in topics for part in topic["resultsByPartition"])
        codes = (int(part["partitionErrorCode"]) for part in parts)
        yield from (code for code in codes if _ERRORS.get(code) is not None)
    elif name is not None:
        yield int(answer["errorCode"])


def _is_ordinary(name: str, body: Mapping[str, Any]) -> bool:
    """Whether a request that succeeded says nothing of fencing: all but a takeover and an abort."""
    if name == "InitProducerId":
        return _named(body, "transactionalId") is None
    return name != "EndTxn" or bool(body["committed"])


def _is_of_broker(body: Mapping[str, Any]) -> bool:
    """Whether a leader asks the coordinator about a producer's transaction (KIP-890)."""
    return "transactions" in body


def _named(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name, body.get(f"v3AndBelow{name[:1].upper()}{name[1:]}"))
    return value if isinstance(value, str) else None


def _number(fields: Mapping[str, Any], name: str, greatest: int) -> int | None:
    value = fields.get(name, fields.get(f"v3AndBelow{name[:1].upper()}{name[1:]}"))
    if value is None or value == -1:
        return None
    if not isinstance(value, int) or not 0 <= value <= greatest:
        raise ValueError(name)
    return value


def _instance(document: Mapping[str, Any], header: Mapping[str, Any]) -> ClientInstance | None:
    match = _CONNECTION.fullmatch(str(document.get("connection", "")))
    if match is None:
        return None
    software = document.get("clientInformation") or {}
    words = (str(software.get(name, "")) for name in ("softwareName", "softwareVersion"))
    listener = document.get("listener")
    return ClientInstance(
        client_id=str(header.get("clientId", "")),
        host=match["host"],
        port=int(match["port"]),
        listener=None if listener is None else str(listener),
        software=" ".join(words).strip() or None,
    )
