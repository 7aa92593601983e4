"""Query parameters of the endpoints; an unknown one is rejected, because a misspelled filter that was
ignored would show everything.

In a pattern for names an asterisk matches any text, every other character itself. Regular expressions
are not offered: one with catastrophic backtracking would block the event loop, and Python cannot stop
it. The search here takes time in proportion to the name.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Annotated, Final

from fastapi import Query, Request
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from rules.catalogue.all_rules import RULES, SELF_MONITORING
from service.api.core.bodies import Body, no_controls
from service.api.core.paging import DEFAULT_LIMIT, MAX_LIMIT
from service.api.core.problems import invalid

MAX_PATTERN: Final = 200  # characters
MAX_PARTITION: Final = 2**31 - 1
MAX_CURSOR: Final = 60_000  # a group's name alone may have 32,767 bytes
RULE_IDS: Final = frozenset(
    meta.rule_id for meta in (*(rule.meta for rule in RULES), SELF_MONITORING)
)


Word = Annotated[str, Field(min_length=1, max_length=MAX_PATTERN), AfterValidator(no_controls)]


class NoQuery(Body):
    """A query without parameters."""


class PageQuery(NoQuery):
    """Which page of a list."""

    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT, description="Items at most")] = DEFAULT_LIMIT
    cursor: Annotated[str | None, Field(max_length=MAX_CURSOR)] = None
    """`next` of the previous page"""


Pattern = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_PATTERN,
        description="Whole name; an asterisk matches any text",
        examples=["orders-*"],
    ),
]
PartitionNumber = Annotated[int, Field(ge=0, le=MAX_PARTITION)]


NoParameters = Annotated[NoQuery, Query()]
PageParameters = Annotated[PageQuery, Query()]


class StateFilter(StrEnum):
    """Which findings, by their state."""

    OPEN = "open"
    ENDED = "ended"
    ALL = "all"


def require_known_rule(rule_id: str) -> str:
    """Reject the id of a rule that does not exist."""
    if rule_id not in RULE_IDS:
        raise PydanticCustomError("rule", "there is no such rule; /api/v1/rules lists them")
    return rule_id


async def no_repeats(request: Request) -> None:
    """Reject a parameter that is given twice: only one of the values would count."""
    names = Counter(name for name, _ in request.query_params.multi_items())
    name, times = next(iter(names.most_common(1)), ("", 0))
    if times > 1:
        raise invalid(name[:MAX_PATTERN], "given more than once")


def matches(pattern: str | None, name: str) -> bool:
    """Return whether a whole name matches; no pattern matches every name."""
    if pattern is None:
        return True
    first, *others = pattern.split("*")
    if not others:
        return name == pattern
    *middle, last = others
    if not name.startswith(first) or len(name) < len(first) + len(last):
        return False
    return name.endswith(last) and _holds(name, middle, len(first), len(name) - len(last))


def _holds(name: str, pieces: list[str], begin: int, end: int) -> bool:
    """Return whether name[begin:end] contains the pieces in order and without overlap."""
    for piece in pieces:
        position = name.find(piece, begin, end)
        if position < 0:
            return False
        begin = position + len(piece)
    return True
