"""The document of `tidemark explain`: incidents of applications, brokers' lines, lines of the transaction log."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rules.exceptions.logged_transactions import EndedBy
from rules.exceptions.meaning import Ability, Records, Role
from rules.facts.application_log import Client, Outcome
from rules.facts.tool_output import Tool
from rules.tool_output.reasons import Reason
from service.views.model import Model, Timestamp


class ExplainedProblem(Model):
    """One meaning among the errors of an incident."""

    meaning: Annotated[str, Field(description="Lasting; docs/explain.md lists all")]
    title: str
    error: Annotated[str, Field(description="Kafka's name, or librdkafka's with _ before it")]
    role: Annotated[Role, Field(description="A consequence has its cause before it")]
    outcome: Annotated[Outcome, Field(description="What the client says that it does now")]
    count: int
    first_at: Timestamp | None
    last_at: Timestamp | None
    line: Annotated[int, Field(description="Of its log, from 1")]
    source: str
    topic: str | None
    partition: int | None
    message: str
    framework: Annotated[str | None, Field(description="What a framework around it does about it")]


class ExplainedIncident(Model):
    """Errors of one application that belong together; the cause is their first one that is no consequence."""

    meaning: Annotated[str, Field(description="Of the cause; docs/explain.md lists all")]
    title: str
    explanation: str
    is_cause_known: Annotated[bool, Field(description="false: only consequences are in the text")]
    is_harmless: Annotated[bool, Field(description="true: the client dealt with all of it")]
    records: Annotated[Records, Field(description="What may have become of records")]
    condition: Annotated[str, Field(description="When that is so")]
    idempotent_producer: Ability | None
    """What a plain idempotent producer can still do; null: it is none, or not concerned"""
    transactional_producer: Ability | None
    """What a transactional producer can still do; null: it is none, or not concerned"""
    is_transactional: Annotated[bool | None, Field(description="null: the text does not say")]
    client: Client | None
    application: Annotated[str | None, Field(description="Container, pod or service")]
    client_id: str | None
    handle: Annotated[str | None, Field(description="librdkafka's name of the instance")]
    transactional_id: str | None
    group: str | None
    topic: str | None
    partition: int | None
    producer_id: int | None
    action: str
    check: str
    next_commands: list[str]
    sequences: Annotated[
        list[int],
        Field(description="Places, from 0, of the events in `sequences` about the same rejections"),
    ]
    problems: Annotated[list[ExplainedProblem], Field(description="In order")]


class LoggedState(Model):
    """A state that a coordinator wrote."""

    state: Annotated[str | None, Field(description="null: the id is forgotten")]
    at: Timestamp | None
    started_at: Timestamp | None
    producer_id: int | None
    producer_epoch: int | None
    timeout_ms: int | None
    partitions: list[str]
    line: int


class LoggedTransaction(Model):
    """One transaction of an id, as its states show it; a time is null where its state is not in the text."""

    outcome: Annotated[Literal["committed", "aborted"] | None, Field(description="null: open")]
    ended_by: Annotated[EndedBy | None, Field(description="Who decided it; null: open")]
    started_at: Timestamp | None
    decided_at: Timestamp | None
    completed_at: Annotated[Timestamp | None, Field(description="When all markers were written")]
    open_ms: Annotated[int | None, Field(description="From its begin until it was decided")]
    completing_ms: Annotated[int | None, Field(description="From the decision to the markers")]
    timeout_ms: int | None
    producer_id: int | None
    producer_epoch: int | None
    partitions: list[str]
    line: int


class LoggedTransactions(Model):
    """The states of one transactional id in the order of the lines, and what the last one means."""

    transactional_id: str
    title: str
    records: Records
    condition: str
    action: str
    remarks: list[str]
    next_commands: list[str]
    earlier_states: Annotated[int, Field(description="That are left out")]
    timeline: Annotated[list[LoggedTransaction], Field(description="In order")]
    states: list[LoggedState]


class ToolItem(Model):
    """One row of a tool's output."""

    line: Annotated[int, Field(description="Of its text, from 1; the first one if it was wrapped")]
    words: str
    topic: str | None
    partition: int | None
    group: str | None
    transactional_id: str | None
    producer_id: int | None


class ExplainedOutput(Model):
    """Rows of one of Kafka's tools that mean the same."""

    tool: Annotated[Tool, Field(description="Without .sh")]
    reason: Annotated[Reason, Field(description="Lasting; docs/explain.md lists all")]
    verdict: Annotated[Literal["OK", "UNKNOWN", "BREACH"], Field(description="Of what is shown")]
    title: str
    explanation: str
    records: Records
    condition: str
    action: str
    next_commands: list[str]
    count: Annotated[int, Field(description="Of rows; `items` has at most 200")]
    source: str
    items: list[ToolItem]


class Unexplained(Model):
    """Words of Kafka that no table has."""

    text: str
    line: int
    source: str
    count: int


class ExplainedLine(Model):
    """A line of a broker or a controller about a partition."""

    topic: str
    partition: int
    kind: str
    at: Timestamp | None
    broker: int | None
    explanation: str
    records: Annotated[Records, Field(description="By this line alone")]
    next_command: str | None


class KnownNow(Model):
    """What a running Tidemark or the brokers know of a name in the text."""

    by: Annotated[str, Field(description="service or brokers")]
    about: str
    verdict: str
    summary: str
