"""Query parameters of the endpoints; an unknown one is rejected, because a misspelled filter that was
ignored would show everything.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Annotated, Final

from fastapi import Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from rules.catalogue.all_rules import RULES, SELF_MONITORING
from rules.facts.groups import GroupType
from rules.verdict import Severity
from service.api.core.bodies import no_controls
from service.api.core.globs import MAX_PATTERN
from service.api.core.models import VerdictWord
from service.api.core.paging import DEFAULT_LIMIT, MAX_LIMIT
from service.api.core.problems import invalid

MAX_PARTITION: Final = 2**31 - 1
MAX_CURSOR: Final = 60_000  # a group's name alone may have 32,767 bytes
RULE_IDS: Final = frozenset(
    meta.rule_id for meta in (*(rule.meta for rule in RULES), SELF_MONITORING)
)


Word = Annotated[str, Field(min_length=1, max_length=MAX_PATTERN), AfterValidator(no_controls)]


class NoQuery(BaseModel):
    """A query without parameters."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


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


class GroupQuery(PageQuery):
    """Which groups."""

    name: Pattern | None = None
    state: Annotated[str | None, Field(max_length=MAX_PATTERN, examples=["Empty"])] = None
    """Kafka's own word"""
    type: GroupType | None = None


class PartitionQuery(PageQuery):
    """Which partitions."""

    topic: Pattern | None = None
    at_risk: Annotated[
        bool,
        Field(
            description="Only those with fewer in-sync replicas than replicas, or an unreplicated "
            "span; partitions that could not be observed are among the gaps of the cluster"
        ),
    ] = False


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


class FindingQuery(PageQuery):
    """Which findings."""

    state: StateFilter = StateFilter.OPEN
    """open: from memory; ended, all: from the database"""
    rule: Annotated[str | None, AfterValidator(require_known_rule)] = None
    topic: Pattern | None = None
    """For a finding about a group or a transaction: one of its partitions"""
    severity: Severity | None = None
    verdict: VerdictWord | None = None


async def no_repeats(request: Request) -> None:
    """Reject a parameter that is given twice: only one of the values would count."""
    names = Counter(name for name, _ in request.query_params.multi_items())
    name, times = next(iter(names.most_common(1)), ("", 0))
    if times > 1:
        raise invalid(name[:MAX_PATTERN], "given more than once")
