"""Makes up answers of brokers: valid ones of every message version, by the codec's own definitions."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator
from dataclasses import Field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin

from kio.schema.errors import ErrorCode

from collectors.wire import api as product
from collectors.wire import codec
from collectors.wire.api import Api
from service.sandbox.workloads import log_requests, raw_cluster, raw_producer
from tests.unit.collectors.wire.messages import part
from tests.unit.collectors.wire.records import Batch

Draw = random.Random

NAMES: Final = ("", "a", "orders", "zahlungen-ä", "t" * 80)
COUNTS: Final = (0, 1, 1, 2, 3)
MANY: Final = 40  # parts; arrays as long as that are read in another way
ERRORS: Final = tuple(ErrorCode)


def answer_versions() -> Iterator[tuple[Api, int]]:
    """Yield every message version that the product or the sandbox reads, once."""
    seen: set[tuple[int, int]] = set()
    for module in (product, raw_cluster, raw_producer, log_requests):
        for value in vars(module).values():
            if not isinstance(value, Api):
                continue
            for version in range(value.oldest, value.newest + 1):
                if (value.key, version) not in seen:
                    seen.add((value.key, version))
                    yield value, version


def entity(draw: Draw, api: Api, version: int) -> Any:
    """Return an answer as the codec would return it."""
    return _part(draw, part(api, version, f"{api.name}Response"), MANY)


def encoded(draw: Draw, api: Api, version: int) -> bytes:
    """Return the body of an answer."""
    return codec.encode(entity(draw, api, version))


def batches(draw: Draw) -> bytes:
    """Return record batches, of which the last may be cut short."""
    content = b"".join(
        Batch(base_offset=10 * n, payload=draw.randbytes(draw.randrange(90))).encode()
        for n in range(draw.choice(COUNTS))
    )
    return content[: len(content) - draw.choice((0, 0, 1, 40))]


def _part(draw: Draw, kind: Any, most: int) -> Any:
    """Return a part of a message; below the first array there are few elements."""
    return kind(**{entry.name: _value(draw, entry, most) for entry in fields(kind)})


def _value(draw: Draw, entry: Field[Any], most: int) -> Any:
    options = get_args(entry.type) if get_origin(entry.type) is UnionType else (entry.type,)
    if NoneType in options and draw.random() < 0.3:
        return None
    [kind] = [option for option in options if option is not NoneType]
    if get_origin(kind) is not tuple:
        return _single(draw, kind, entry, most)
    count = most if draw.random() < 0.2 else draw.choice(COUNTS)
    return tuple(_single(draw, get_args(kind)[0], entry, 3) for _ in range(count))


def _single(draw: Draw, kind: Any, entry: Field[Any], most: int) -> Any:
    if is_dataclass(kind):
        return _part(draw, kind, most)
    return PRIMITIVES[entry.metadata["kafka_type"]](draw)


def _integer(bits: int) -> Callable[[Draw], int]:
    limit = 1 << bits - 1
    return lambda draw: draw.choice((-1, 0, 1, draw.randrange(-limit, limit)))


def _milliseconds(draw: Draw) -> timedelta:
    return timedelta(milliseconds=draw.randrange(1 << 31))


PRIMITIVES: Final[dict[str, Callable[[Draw], Any]]] = {
    "bool": lambda draw: draw.random() < 0.5,
    "bytes": lambda draw: draw.randbytes(draw.choice((0, 3, 200))),
    "datetime_i64": lambda draw: datetime.fromtimestamp(draw.randrange(1 << 32), UTC),
    "error_code": lambda draw: draw.choice(ERRORS),
    "int8": _integer(8),
    "int16": _integer(16),
    "int32": _integer(32),
    "int64": _integer(64),
    "records": batches,
    "string": lambda draw: draw.choice(NAMES),
    "timedelta_i32": _milliseconds,
    "timedelta_i64": _milliseconds,
    "uint16": lambda draw: draw.randrange(1 << 16),
    "uuid": lambda draw: uuid.UUID(int=draw.getrandbits(128)),
}
