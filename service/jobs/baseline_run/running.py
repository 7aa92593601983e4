"""Everything that `tidemark nightly run` does, in order: plan, masks, Spark, publishing.

Each step can be repeated: what broke off anywhere is done again by the next run, and until a run is
published whole the one before it stays in force.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol
from uuid import uuid4
from zoneinfo import ZoneInfo

from pyarrow.fs import LocalFileSystem

from rules.baseline.civil import civil_day
from rules.baseline.layout import HISTORY_FILE
from rules.errors import ConflictError, StoreError
from service.history.folder import Described, open_folder, shown_url
from service.history.folding import Folded, days_of_hours
from service.jobs.baseline_run.lock import alone
from service.jobs.baseline_run.masks import write_masks
from service.jobs.baseline_run.plan import Past, Plan, again, missing
from service.jobs.baseline_run.reporting import JsonObject, Reporter
from service.jobs.baseline_run.spark_process import SparkOrder, run_job
from service.storage.baselines.alert_windows import AlertWindow
from service.storage.baselines.publishing import Published
from service.storage.baselines.run_files import RunPlace
from spark.places import Place
from spark.runs import DAYS, RUNS, days_of, last_run, remove_later, run_of

SCRATCH: Final = "nightly-scratch"  # in the data directory
MILLISECOND: Final = timedelta(milliseconds=1)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class BaselineRunStore(Protocol):
    """The database, as far as a night needs it; both may raise StoreError."""

    def windows(self, cluster: str, begin: datetime, end: datetime) -> Sequence[AlertWindow]:
        """Return when alerts were open, cut to [begin, end)."""

    def publish(self, place: RunPlace, cluster: str, now: datetime) -> Published:
        """Load a run and make it the current one; again, it changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlyOrder:
    """What is asked for."""

    history: str  # the folder of history, as a path or an address
    data_directory: Path
    master: str
    conf: Mapping[str, str]
    timeout_seconds: float
    keep_days: int
    environment: Mapping[str, str]
    day: date | None = None  # this night and those after it again; None: those that are missing
    settled: timedelta = timedelta(0)  # so long after midnight a day's samples are all there
    cluster: str | None = None  # that the folder has to be of; None: whatever it is of
    time_zone: str | None = None  # the same


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlyPlan:
    """What a run would do."""

    cluster: str
    zone: str
    buckets: int
    plan: Plan
    last: date | None  # the day of the last run that there is
    yesterday: date  # the last civil day that is over


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedRuns:
    """What a run has done."""

    nights: Sequence[JsonObject] = field(default_factory=tuple)  # as the job told of them, in order
    published: Published | None = None
    published_day: date | None = None


def planned(order: NightlyOrder, now: datetime) -> NightlyPlan | None:
    """Return what is to be done; None while there is no history at all.

    Raises:
        StoreError: history cannot be read, or is of another cluster or time zone.
        ConflictError: the day that is asked for cannot be made.
    """
    place = _place(order)
    with _reading(place):
        if place.find(HISTORY_FILE) is None:
            return None
        folder = open_folder(order.history)
        described = folder.described
        _check(order, described)
        days = [*days_of(place, DAYS)[:1], *days_of_hours(folder)[:1]]
        runs = [day for day in days_of(place, RUNS) if run_of(place, day) is not None]
    past = Past(
        first_day=min(days, default=None),
        runs=tuple(runs),
        yesterday=(now - order.settled).astimezone(ZoneInfo(described.time_zone)).date()
        - timedelta(days=1),
    )
    try:
        plan = missing(past) if order.day is None else again(past, order.day)
    except ValueError as exc:
        raise ConflictError(str(exc)) from exc
    return NightlyPlan(
        cluster=described.cluster,
        zone=described.time_zone,
        buckets=described.buckets,
        plan=plan,
        last=runs[-1] if runs else None,
        yesterday=past.yesterday,
    )


def _check(order: NightlyOrder, found: Described) -> None:
    """Refuse a folder of another cluster or zone, and say what whoever runs the night can do."""
    cluster = f"give --cluster {found.cluster}, or by --config the settings that `serve` has"
    zone = (
        "give by --config the settings that `serve` has, or "
        f"TIDEMARK_HISTORY__TIME_ZONE={found.time_zone}; another zone needs another history.url"
    )
    for what, theirs, wanted, advice in (
        ("is of the cluster", found.cluster, order.cluster, cluster),
        ("has days of the time zone", found.time_zone, order.time_zone, zone),
    ):
        if wanted not in {None, theirs}:
            told = f"history at {shown_url(order.history)} {what} {theirs}, not {wanted}: {advice}"
            raise StoreError(told, retryable=False)


def run_missing(
    order: NightlyOrder,
    store: BaselineRunStore,
    now: Callable[[], datetime],
    tell: Reporter,
    fold: Callable[[datetime], Folded] | None = None,
) -> CompletedRuns:
    """Make the nights that are missing, or that are asked for, and publish the last one.

    Args:
        order: what is asked for.
        store: where alerts are, and where what is usual is read.
        now: the wall clock.
        tell: is given events as they happen, as `telling.line_of` describes them.
        fold: brings history's hours into its days; None: they are there.

    Raises:
        StoreError: history cannot be read or written, or the database is away.
        BaselineRunError: Spark failed; the nights before that are made.
        ConflictError: another run is at work, or the day cannot be made.
    """
    place = _place(order)
    with _alone(order, place):
        found = planned(order, now())
        if found is None:
            tell({"event": "nothing", "why": f"there is no history yet at {shown_url(place.url)}"})
            return CompletedRuns()
        if fold is not None:
            folded = fold(now())
            tell({"event": "folded", "days": len(folded.days), "damaged": dict(folded.damaged)})
            found = planned(order, now()) or found
        _remove_ahead(place, found, tell)
        nights = _made(order, found, place, store, tell)
        published, day = _published(place, found, store, now(), tell)
        return CompletedRuns(nights=nights, published=published, published_day=day)


def _remove_ahead(place: Place, found: NightlyPlan, tell: Reporter) -> None:
    """Remove runs of days that are not over: by a clock that was ahead, from a part of the day.

    Left there, such a run would be taken for the whole night as soon as its day is over.
    """
    with _reading(place):
        removed = remove_later(place, found.yesterday)
    if removed:
        days = [day.isoformat() for day in removed]
        why = (
            f"removed runs of days that are not over, by a clock that was ahead: {', '.join(days)}"
        )
        tell({"event": "removed", "days": days, "why": why})


def _made(
    order: NightlyOrder,
    found: NightlyPlan,
    place: Place,
    store: BaselineRunStore,
    tell: Reporter,
) -> list[JsonObject]:
    plan = found.plan
    if plan.skipped:
        tell({"event": "skipped", "nights": plan.skipped})
    if plan.is_empty:
        tell({"event": "nothing", "why": "no night is missing"})
        return []
    for day in plan.nights:
        _write_masks(place, found, day, store)
    nights = []
    with _scratch(order.data_directory) as scratch:
        for told in run_job(_spark_order(order, found, scratch), order.environment):
            tell(told)
            nights += [told] if told["event"] == "night" else []
    return nights


def _write_masks(place: Place, found: NightlyPlan, day: date, store: BaselineRunStore) -> None:
    calendar = civil_day(day, found.zone)
    begin, end = (EPOCH + MILLISECOND * ms for ms in (calendar.start_ms, calendar.end_ms))
    windows = store.windows(found.cluster, begin, end)
    with _reading(place):
        write_masks(windows, files=place.files, history=place.root, day=day, buckets=found.buckets)


def _spark_order(order: NightlyOrder, found: NightlyPlan, scratch: Path) -> SparkOrder:
    days = [day.isoformat() for day in found.plan.nights]
    options = ["--history", order.history, "--zone", found.zone, "--keep", str(order.keep_days)]
    return SparkOrder(
        master=order.master,
        conf=order.conf,
        arguments=[*options, *days],
        scratch=scratch,
        timeout_seconds=order.timeout_seconds,
    )


def _published(
    place: Place,
    found: NightlyPlan,
    store: BaselineRunStore,
    now: datetime,
    tell: Reporter,
) -> tuple[Published | None, date | None]:
    """Publish the last run, also one that an earlier try could not publish."""
    with _reading(place):
        last = last_run(place, date.max)
    if last is None:
        return None, None
    run = last.run
    where = RunPlace(files=place.files, history=place.root, day=run.day, run_id=run.id)
    published = store.publish(where, found.cluster, now)
    tell(
        {
            "event": "published",
            "day": run.day.isoformat(),
            "run": run.id,
            "outcome": published.outcome.value,
            "series": published.series,
            "seconds": round(published.seconds, 3),
        }
    )
    return published, run.day


def _place(order: NightlyOrder) -> Place:
    try:
        return Place(order.history)
    except OSError as exc:
        raise StoreError(str(exc), retryable=False) from exc


@contextmanager
def _reading(place: Place) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        told = f"history at {shown_url(place.url)}: {exc}"
        raise StoreError(told, retryable=True) from exc


@contextmanager
def _alone(order: NightlyOrder, place: Place) -> Iterator[None]:
    """Keep others from this history, where it is on this machine, and from this data directory."""
    with ExitStack() as held:
        held.enter_context(alone(order.data_directory))
        here = Path(place.root)
        if isinstance(place.files, LocalFileSystem) and here.is_dir():
            held.enter_context(alone(here))
        yield


@contextmanager
def _scratch(data_directory: Path) -> Iterator[Path]:
    """Give a folder for Spark's own files; those that killed runs left go now."""
    every = data_directory / SCRATCH
    shutil.rmtree(every, ignore_errors=True)
    scratch = every / uuid4().hex
    try:
        yield scratch
    finally:
        with suppress(OSError):
            shutil.rmtree(every)
