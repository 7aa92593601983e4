"""What `tidemark doctor` found, as JSON and as the rows of its table."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from service.views.model import Model


class CheckState(StrEnum):
    """Result of one check, the worst last."""

    OK = "ok"
    WARN = "warn"  # works, and something is worth a look
    UNKNOWN = "unknown"  # could not be tried
    MISSING = "missing"


class Area(StrEnum):
    """What a check is about."""

    CLUSTER = "cluster"
    PERMISSION = "permission"
    REQUEST = "request"
    CLOCK = "clock"
    MACHINE = "machine"
    DATABASE = "database"
    RECEIVER = "receiver"
    SERVICE = "service"


class Acl(Model):
    """The ACL that grants a permission."""

    operation: str
    resource: str
    pattern_type: str
    name: str
    command: Annotated[str, Field(description="For a POSIX shell, with Kafka's own tool")]


class Check(Model):
    """One check."""

    area: Area
    subject: str
    state: CheckState
    summary: Annotated[str, Field(description="What was found, in a few words")]
    detail: str | None = None
    """More about it, and what to do"""
    key: Annotated[str | None, Field(description="Lasting name of a permission")] = None
    rules: Annotated[tuple[str, ...], Field(description="Rules that know less without it")] = ()
    denied: Annotated[
        tuple[str, ...], Field(description="Names that are denied; a prefix ends with *")
    ] = ()
    acl: Acl | None = None


class Doctor(Model):
    """All checks."""

    version: str
    at: datetime
    state: Annotated[CheckState, Field(description="The worst of all checks")]
    exit_code: int
    cluster: str | None
    cluster_id: str | None
    principal: Annotated[str | None, Field(description="For whom the ACLs are")]
    checks: list[Check]


STATES: Final = tuple(CheckState)


def worst(checks: Iterable[Check]) -> CheckState:
    """Return the worst state; OK of nothing."""
    return max((check.state for check in checks), key=STATES.index, default=CheckState.OK)
