"""The document of `tidemark posture --client-config`: what files of clients' settings say."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rules.posture.client_config.reasons import Why
from rules.posture.line import PostureVerdict
from rules.verdict import Severity
from service.views.model import Model


class ClientConfigLine(Model):
    """One setting of one client, and what follows from its value."""

    check: Annotated[str, Field(description="As of posture, where brokers or evidence say more")]
    name: Annotated[str, Field(description="The file, and the client in it")]
    file: str
    line: Annotated[int | None, Field(description="From 1; null: the setting is not in the file")]
    setting: str
    value: Annotated[str | None, Field(description="null: not set, or not shown")]
    verdict: PostureVerdict
    severity: Annotated[
        Severity | None,
        Field(description="Of what is wrong; info: it matters only for exactly-once"),
    ]
    reason: Why
    consequence: str
    fix: Annotated[str, Field(description="The line of configuration that is right")]
    page: Annotated[str, Field(description="Below docs/")]


class ClientConfigs(Model):
    """What files of clients' settings say."""

    files: list[str]
    lines: Annotated[list[ClientConfigLine], Field(description="What is wrong first")]
    assumptions: Annotated[list[str], Field(description="What the files do not say")]
    problems: Annotated[list[str], Field(description="What could not be read or is not judged")]
