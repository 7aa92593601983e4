"""Pages of lists, by the key of the last item shown (keyset pagination).

Topics and groups come and go between two requests: pages by item count would repeat some and hide
others. A cursor is opaque to clients: base64url of a JSON list, the name of its list first.
"""

from __future__ import annotations

import base64
import binascii
import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from itertools import islice
from operator import itemgetter
from typing import Annotated, Any, Final, Generic, TypeVar
from urllib.parse import quote, urlencode

from fastapi import Depends, Request

from rules.facts.last_observation import microseconds
from rules.facts.times import EPOCH
from service.api.core.problems import ProblemError

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000
INT64_MAX: Final = 2**63 - 1
LAST_US: Final = microseconds(datetime(9999, 1, 1, tzinfo=UTC))
MAX_LINK: Final = 4000  # proxies reject longer headers, and a group's name may have 32 KiB

Key = tuple[Any, ...]  # text and integers, the same kinds for every item of a list
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items of a list, and the key after which the next page begins; None at the end."""

    items: Sequence[T]
    last: Key | None


@dataclass(frozen=True, slots=True)
class Ordered(Generic[T]):
    """All items of a list in the order of their keys."""

    keys: Sequence[Key]
    items: Sequence[T]

    def page(
        self,
        *,
        after: Key | None,
        limit: int,
        newest_first: bool = False,
        is_shown: Callable[[T], bool] = lambda _: True,
    ) -> Page[T]:
        """Return up to `limit` items that are shown, those after `after`."""
        places = self._places(after, newest_first=newest_first)
        shown = islice((place for place in places if is_shown(self.items[place])), limit + 1)
        page = first_of(list(shown), limit, lambda place: self.keys[place])
        return Page([self.items[place] for place in page.items], page.last)

    def _places(self, after: Key | None, *, newest_first: bool) -> range:
        if newest_first:
            end = len(self.keys) if after is None else bisect_left(self.keys, after)
            return range(end - 1, -1, -1)
        return range(0 if after is None else bisect_right(self.keys, after), len(self.keys))


def ordered(items: Iterable[T], key: Callable[[T], Key]) -> Ordered[T]:
    """Return items in the order of their keys."""
    pairs = sorted(((key(item), item) for item in items), key=itemgetter(0))
    return Ordered([key for key, _ in pairs], [item for _, item in pairs])


def page_of(
    items: Iterable[T],
    key: Callable[[T], Key],
    *,
    after: Key | None,
    limit: int,
    newest_first: bool = False,
) -> Page[T]:
    """Return up to `limit` items in the order of their keys, those after `after`."""
    return ordered(items, key).page(after=after, limit=limit, newest_first=newest_first)


def first_of(rows: Sequence[T], limit: int, key: Callable[[T], Key]) -> Page[T]:
    """Return the first `limit` rows of an ordered list, of which one row more was read."""
    shown = rows[:limit]
    return Page(shown, key(shown[-1]) if len(rows) > limit else None)


class Pager:
    """Makes the answer to one request for a page of a list."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.headers: dict[str, str] = {}  # of the answer

    @property
    def target(self) -> str:
        """Return what is requested: path and query."""
        return f"{self._request.scope['path']}?{self._request.url.query}"

    def page(self, name: str, page: Page[Any]) -> dict[str, Any]:
        """Return the items of a page and the cursor of the next one, to which a header links."""
        return {"items": page.items, "next": self._next(name, page.last)}

    def _next(self, name: str, last: Key | None) -> str | None:
        if last is None:
            return None
        cursor = encode_cursor(name, last)
        link = f'<{next_url(self._request, cursor)}>; rel="next"'
        if len(link) <= MAX_LINK:
            self.headers["Link"] = link
        return cursor


async def _pager(request: Request) -> Pager:
    return Pager(request)


Paging = Annotated[Pager, Depends(_pager)]


def encode_cursor(name: str, key: Key) -> str:
    """Return the cursor that goes on after `key` in the list called `name`."""
    text = json.dumps([name, *key], separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode(errors="surrogatepass")).decode().rstrip("=")


def decode_cursor(cursor: str | None, name: str, *kinds: type) -> Key | None:
    """Return the key in a cursor.

    Raises:
        ProblemError: it is no cursor of this list.
    """
    if cursor is None:
        return None
    content = _read(cursor)
    key = content[1:] if isinstance(content, list) else []
    is_ours = isinstance(content, list) and content[:1] == [name] and len(key) == len(kinds)
    if not is_ours or not all(_fits(value, kind) for value, kind in zip(key, kinds, strict=True)):
        raise foreign_cursor()
    return tuple(key)


def decode_row_cursor(cursor: str | None, name: str) -> int | None:
    """Return the row id in a cursor.

    Raises:
        ProblemError: it is no cursor of this list.
    """
    key = decode_cursor(cursor, name, int)
    return None if key is None else int(key[0])


def decode_time_cursor(cursor: str | None, name: str) -> tuple[datetime, int] | None:
    """Return the time and row id in a cursor whose key begins with microseconds.

    Raises:
        ProblemError: it is no cursor of this list.
    """
    key = decode_cursor(cursor, name, int, int)
    return None if key is None else (time_in(key), key[1])


def time_in(key: Key) -> datetime:
    """Return the time that a key begins with.

    Raises:
        ProblemError: there is no such time.
    """
    if key[0] > LAST_US:
        raise foreign_cursor()
    return EPOCH + timedelta(microseconds=key[0])


def foreign_cursor() -> ProblemError:
    """Return the problem of a cursor that this list did not give."""
    return ProblemError(HTTPStatus.BAD_REQUEST, "the cursor does not belong to this list")


def next_url(request: Request, cursor: str) -> str:
    """Return the URL of the next page: the same request with another cursor."""
    query = [(name, value) for name, value in request.query_params.multi_items()]
    parameters = [pair for pair in query if pair[0] != "cursor"]
    path = quote(request.scope["path"], errors="replace")
    return f"{path}?{urlencode([*parameters, ('cursor', cursor)])}"


def _read(cursor: str) -> Any:
    padded = cursor + "=" * (-len(cursor) % 4)
    try:
        text = base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True)
        return json.loads(text.decode(errors="surrogatepass"))
    except (ValueError, binascii.Error, RecursionError):
        return None


def _fits(value: object, kind: type) -> bool:
    return type(value) is kind and (not isinstance(value, int) or 0 <= value <= INT64_MAX)
