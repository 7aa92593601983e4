"""The documents of commands that query neither a Tidemark nor a cluster: settings, rules, history, the database."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field

from service.api.baselines.models import Usual
from service.api.findings.rules import Rule
from service.api.past.models import SeriesLabels
from service.cli.dashboards.grafana import Change
from service.cli.rules import HEADINGS
from service.cli.token import TIMES
from service.runbooks.form import KEYS, BlockKind
from service.schemas.forms import Form, compose, list_of, picked
from service.settings.sources import Source
from service.storage.baselines.publishing import Publishing
from service.storage.database.schema import SchemaState
from service.views.log_files.models import BatchRow, InspectedFiles, RecordRow
from service.views.model import Model


class Setting(Model):
    """A setting that is in effect."""

    key: str
    value: Annotated[Any, Field(description="A secret is ***")]
    source: Source


class Settings(Model):
    """All settings."""

    settings: list[Setting]
    warnings: Annotated[list[str], Field(description="Valid, and probably wrong")]


class Context(Model):
    """A Tidemark by its name."""

    name: str
    server: str
    current: bool
    token: Annotated[str | None, Field(description="Where it is; never the token itself")]


class Contexts(Model):
    """All contexts."""

    current: str | None
    contexts: list[Context]


class Dashboard(Model):
    """A dashboard, and what was done with it, or would be."""

    uid: str
    title: str
    file: str
    state: Change


class Dashboards(Model):
    """Dashboards that were written."""

    summary: str
    dashboards: list[Dashboard]


class Database(Model):
    """The schema of the database, and what our role may do there."""

    revision: str | None
    head: str
    state: SchemaState
    role: str
    may_upgrade: bool
    missing_privileges: list[str]
    drift: list[str]


class RejectedRows(Model):
    """Rows that were not imported for one reason."""

    rows: int
    why: str
    example: str | None


class ImportedMetric(Model):
    """What was imported of one metric; times are ms since 1970-01-01 UTC."""

    series: int
    rows: int
    first_ms: int
    last_ms: int


class Import(Model):
    """What was imported, or would be."""

    history: str
    cluster: str
    dry_run: bool
    series: int
    metrics: dict[str, ImportedMetric]
    rejected: dict[str, RejectedRows]
    repeated: int
    added: Annotated[int | None, Field(description="Samples; null: nothing was written")]
    already_there: int | None
    incidents: int | None
    days: list[date]
    learn_from: date | None
    problems: list[str]
    notes: list[str]


class Plan(Model):
    """The days of which runs would be made."""

    days: list[date]
    last: date | None


class Event(Model):
    """What happened while runs are made, one document each; further fields depend on the event."""

    model_config = ConfigDict(extra="allow")

    event: Annotated[str, Field(examples=["progress", "baseline_run", "folded", "published"])]


class Nightly(Model):
    """The runs that were made, the last document; further fields count series by outcome."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]

    runs: Annotated[int, Field(description="New ones")]
    day: date | None = None
    run: str | None = None
    series: int | None = None
    damaged_buckets: int | None = None
    seconds: int | None = None
    published: Publishing | None = None
    publish_seconds: int | None = None


class Damage(Model):
    """A day of a bucket of history that cannot be read."""

    day: date
    bucket: int
    why: str


class MetricOpenings(Model):
    """How often series of a metric would have opened."""

    metric: str
    rule: str | None
    openings: int
    series: int
    series_days: int
    openings_per_series_week: float | None


class Scores(Model):
    """What opened, held against labelled incidents."""

    incidents: int
    found: int
    false_openings: int
    repeated_openings: int
    precision: float | None
    recall: float | None
    event_f1: float | None
    median_delay_seconds: float | None


_OPENING: Final = compose(
    "Opening",
    picked(SeriesLabels, "series_id", "metric", "topic", "partition", "group"),
    series=Annotated[str, Field(description="Its name, or its id if that is not known")],
    opened_at=datetime,
    closed_at=Annotated[datetime | None, Field(description="null: it was open at the end")],
    worst_at=datetime,
    score=float,
    value=float,
    usual=picked(Usual, "weekday", "begins", "ends", "expected", "least", "most"),
    days=Annotated[int, Field(description="That were learnt from")],
    explanation=str,
)
_RESULT: Final = compose(
    "BacktestResult",
    settings=Annotated[list[str], Field(description="Changes of settings; none: those of now")],
    total=MetricOpenings,
    metrics=list[MetricOpenings],
    labels=Scores | None,
    openings=list_of(_OPENING),
)
_BACKTEST: Final = compose(
    "Backtest",
    optional=("only_now", "only_changed"),
    cluster=str,
    time_zone=str,
    from_=Annotated[date, Field(alias="from")],
    to=date,
    days=int,
    learnt_from=date,
    results=list_of(_RESULT),
    not_folded=list[date],
    unnamed=list[str],
    damaged=list[Damage],
    only_now=list_of(_OPENING),
    only_changed=list_of(_OPENING),
)
_RULE: Final = compose(
    "RuleRow", Rule, without=("reasons", "why_it_matters", "runbook"), subject=str
)
_FRONT_MATTER: Final[dict[str, Form]] = dict.fromkeys(KEYS, str | None)
_RUNBOOK_ROW: Final = compose("RunbookRow", fields=_FRONT_MATTER, is_own=bool, source=str)
_BLOCK: Final = compose("Block", kind=BlockKind, when=list[str], commands=list[str], expect=str)
_SECTION: Final = compose("Section", name=str, items=list_of(compose("Prose", text=str) | _BLOCK))
_TOKEN: Final = compose(
    "Token", name=str, scopes=list[str], fields=dict.fromkeys(TIMES, datetime | None)
)

FROM_HERE: Final[Mapping[str, Form]] = {
    "backtest": _BACKTEST,
    "config check": Settings,
    "context ls": Contexts,
    "dashboards export": Dashboards,
    "dashboards push": Dashboards,
    "db check": Database,
    "history import": Import,
    "log inspect": InspectedFiles | BatchRow | RecordRow,
    "nightly run": Plan | Event | Nightly,
    "rules ls": compose("Rules", rules=list_of(_RULE)),
    "rules show": compose(
        "RuleDocument", _RULE, picked(Rule, "reasons"), fields=dict.fromkeys(HEADINGS, str | None)
    ),
    "runbook ls": compose("Runbooks", runbooks=list_of(_RUNBOOK_ROW)),
    "runbook show": compose(
        "Runbook",
        optional=KEYS,
        fields=_FRONT_MATTER,
        source=str,
        alert=str | None,
        sections=list_of(_SECTION),
    ),
    "token list": list_of(_TOKEN),
}
