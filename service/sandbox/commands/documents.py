"""The documents of the sandbox's commands, for docs/schemas/; nothing at run time imports this.

`sandbox receive` has none: its lines repeat requests, in whatever form these have.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Final

from pydantic import ConfigDict, Field

from service.sandbox.simulator.fleet import Pipeline
from service.sandbox.simulator.occasions import Kind
from service.sandbox.workloads.counts import Counts
from service.schemas.forms import Form
from service.views.model import Model


class Node(Model):
    """A node of the sandbox."""

    id: int
    role: Annotated[str, Field(examples=["broker", "controller"])]
    state: Annotated[str, Field(examples=["running", "paused", "dead", "stopped"])]
    pid: int | None
    port: int
    sasl_port: int | None
    tls_port: int | None
    metrics_port: int
    resident_bytes: int | None
    uptime_seconds: float | None
    log_directory: str


class Nodes(Model):
    """No sandbox: no node."""

    nodes: list[Node]


class Cluster(Nodes):
    """The sandbox as it runs."""

    directory: str
    cluster_id: str
    kafka_version: str
    bootstrap_servers: str
    sasl_bootstrap_servers: str
    tls_bootstrap_servers: str
    tls_ca_file: str
    users: Annotated[dict[str, str], Field(description="Password by user name")]


class Workloads(Model):
    """What clients did, by workload."""

    seconds: float
    workloads: dict[str, Counts]


class FaultRow(Model):
    """A fault that can be made."""

    name: str
    summary: str
    timeout_seconds: float | None
    needs_hold: Annotated[bool, Field(description="It lasts only while the command runs")]


class FaultTruth(Model):
    """What a fault did; the further fields depend on the fault."""

    model_config = ConfigDict(extra="allow")

    fault: str
    rule: Annotated[str | None, Field(description="That has to find it; null: none may")]
    also: list[str]
    ends: Annotated[str, Field(description="When it is over")]
    undo: Annotated[list[str], Field(description="Commands that end it; none: it is over")]


class ClockChange(Model):
    """A change of the clocks of a zone."""

    zone: str
    at_ms: int
    at: datetime


class SimulatedOccasion(Model):
    """Something that happened; times are ms since 1970-01-01 UTC."""

    kind: Kind
    is_incident: bool
    topic: str | None
    group: str | None
    partition: int | None
    start_ms: int
    end_ms: int
    over_ms: Annotated[int | None, Field(description="When its backlog had been read")]
    start: datetime
    strength: float
    shows_in: list[str]


class Labels(Model):
    """What was simulated."""

    format: int
    cluster: str
    seed: int
    series: int
    first_day: date
    last_day: date
    step_ms: int
    zones: list[str]
    clock_changes: list[ClockChange]
    pipelines: list[Pipeline]
    occasions: list[SimulatedOccasion]


class SimulatedHistory(Model):
    """Weeks of history that were written, or would be."""

    history: str
    is_written: bool
    samples: int | None
    bytes: int | None
    seconds: float
    simulated: Labels


OF_SANDBOX: Final[Mapping[str, Form]] = {
    "sandbox fault": list[FaultRow] | FaultTruth,
    "sandbox history": SimulatedHistory,
    "sandbox status": Cluster | Nodes,
    "sandbox up": Cluster,
    "sandbox workload": Workloads,
}
