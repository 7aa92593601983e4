"""Everything that `tidemark nightly run` does, in order: plan, masks, Spark, publishing.

Each step is idempotent: whatever was interrupted is done again by the next call, and until a run is
published as a whole the one before it stays in force.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol
from uuid import uuid4
from zoneinfo import ZoneInfo

from pyarrow.fs import LocalFileSystem

from rules.baseline.civil import civil_day
from rules.baseline.layout import DAYS, HISTORY_FILE, RUNS
from rules.errors import ConflictError, StoreError
from rules.facts.times import EPOCH
from service.history.folder import Described, open_folder, shown_url
from service.history.folding import Folded, days_of_hours
from service.history.labels import read_windows
from service.jobs.baseline_run.lock import alone
from service.jobs.baseline_run.masks import write_masks
from service.jobs.baseline_run.plan import Past, Plan, again, missing
from service.jobs.baseline_run.reporting import JsonObject, Reporter
from service.jobs.baseline_run.spark_process import SparkOrder, run_job
from service.storage.baselines.alert_windows import AlertWindow
from service.storage.baselines.publishing import Published
from service.storage.baselines.run_files import RunPlace
from spark.places import Place
from spark.runs import days_of, last_run, remove_later, run_of

SCRATCH: Final = "nightly-scratch"  # in the data directory
MILLISECOND: Final = timedelta(milliseconds=1)


class BaselineRunStore(Protocol):
    """The database, as far as a baseline run needs it; both methods may raise StoreError."""

    def windows(self, cluster: str, begin: datetime, end: datetime) -> Sequence[AlertWindow]:
        """Return when alerts were open, cut to [begin, end)."""

    def publish(self, place: RunPlace, cluster: str, now: datetime) -> Published:
        """Load a run and make it the current one; idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlyOrder:
    """The options of `tidemark nightly run`."""

    history: str  # the folder of history, as a path or an address
    data_directory: Path
    master: str
    conf: Mapping[str, str]
    timeout_seconds: float
    keep_days: int
    environment: Mapping[str, str]
    day: date | None = None  # make this day and later ones again; None: those that are missing
    settled: timedelta = timedelta(0)  # so long after midnight a day's samples are all there
    cluster: str | None = None  # that the folder has to be of; None: whatever it is of
    time_zone: str | None = None  # the same


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlyPlan:
    """What `tidemark nightly run` would do."""

    cluster: str
    zone: str
    buckets: int
    plan: Plan
    last: date | None  # the day of the last run that there is
    yesterday: date  # the last civil day that is over


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedRuns:
    """What `tidemark nightly run` has done."""

    runs: Sequence[JsonObject] = field(default_factory=tuple)  # events of the job, in order
    published: Published | None = None
    published_day: date | None = None


def planned(order: NightlyOrder, now: datetime) -> NightlyPlan | None:
    """Return the plan; None while there is no history at all.

    Raises:
        StoreError: history cannot be read, or belongs to another cluster or time zone.
        ConflictError: the requested day cannot be made.
    """
    place = _place(order)
    with _store_errors(place):
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


def _check(order: NightlyOrder, described: Described) -> None:
    """Reject a folder of another cluster or zone, and say how to fix that."""
    cluster = f"give --cluster {described.cluster}, or by --config the settings that `serve` has"
    zone = (
        "give by --config the settings that `serve` has, or "
        f"TIDEMARK_HISTORY__TIME_ZONE={described.time_zone}; another zone needs another history.url"
    )
    for what, theirs, expected, advice in (
        ("is of the cluster", described.cluster, order.cluster, cluster),
        ("has days of the time zone", described.time_zone, order.time_zone, zone),
    ):
        if expected not in {None, theirs}:
            message = (
                f"history at {shown_url(order.history)} {what} {theirs}, not {expected}: {advice}"
            )
            raise StoreError(message, retryable=False)


def run_missing(
    order: NightlyOrder,
    store: BaselineRunStore,
    now: Callable[[], datetime],
    report: Reporter,
    fold: Callable[[datetime], Folded] | None = None,
) -> CompletedRuns:
    """Make the baseline runs that are missing, or requested, and publish the last one.

    Args:
        order: the options.
        store: source of alert windows, and where baselines are published.
        now: the wall clock.
        report: is called with each event as it happens; see `reporting.line_of`.
        fold: folds the hours of history into its days; None: that is done already.

    Raises:
        StoreError: history cannot be read or written, or the database is away.
        BaselineRunError: Spark failed; the runs before that are complete.
        ConflictError: another call is at work, or the day cannot be made.
    """
    place = _place(order)
    with lock_out_others(order.data_directory, place):
        plan = planned(order, now())
        if plan is None:
            report(
                {"event": "nothing", "why": f"there is no history yet at {shown_url(place.url)}"}
            )
            return CompletedRuns()
        if fold is not None:
            folded = fold(now())
            report(_folded_event(folded))
            plan = planned(order, now()) or plan
            _check_folded(folded, plan)
        _remove_ahead(place, plan, report)
        runs = _make_runs(order, plan, place, store, report)
        published, day = _publish(place, plan, store, now(), report)
        return CompletedRuns(runs=runs, published=published, published_day=day)


def _folded_event(folded: Folded) -> JsonObject:
    return {
        "event": "folded",
        "days": len(folded.days),
        "damaged": dict(folded.damaged),
        "unfinished": {day.isoformat(): why for day, why in folded.unfinished.items()},
    }


def _check_folded(folded: Folded, plan: NightlyPlan) -> None:
    """Reject to learn from a day of which hours are missing because a file cannot be read now."""
    if folded.error is not None and not folded.unfinished.keys().isdisjoint(plan.plan.days):
        raise folded.error


def _remove_ahead(place: Place, plan: NightlyPlan, report: Reporter) -> None:
    """Remove runs of days that are not over, made by a clock that was ahead from a part of the day.

    Otherwise such a run would count as that of the whole day as soon as it is over.
    """
    with _store_errors(place):
        removed = remove_later(place, plan.yesterday)
    if removed:
        days = [day.isoformat() for day in removed]
        why = (
            f"removed runs of days that are not over, by a clock that was ahead: {', '.join(days)}"
        )
        report({"event": "removed", "days": days, "why": why})


def _make_runs(
    order: NightlyOrder,
    plan: NightlyPlan,
    place: Place,
    store: BaselineRunStore,
    report: Reporter,
) -> list[JsonObject]:
    days_plan = plan.plan
    if days_plan.skipped:
        report({"event": "skipped", "days": days_plan.skipped})
    if days_plan.is_empty:
        report({"event": "nothing", "why": "no baseline run is missing"})
        return []
    for day in days_plan.days:
        _write_masks(place, plan, day, store)
    runs = []
    with scratch_folder(order.data_directory) as scratch:
        for event in run_job(_spark_order(order, plan, place, scratch), order.environment):
            report(event)
            runs += [event] if event["event"] == "baseline_run" else []
    return runs


def _write_masks(place: Place, plan: NightlyPlan, day: date, store: BaselineRunStore) -> None:
    calendar = civil_day(day, plan.zone)
    begin, end = (EPOCH + MILLISECOND * ms for ms in (calendar.start_ms, calendar.end_ms))
    windows = store.windows(plan.cluster, begin, end)
    labelled = read_windows(open_folder(place.url), day)
    with _store_errors(place):
        write_masks(
            windows,
            files=place.files,
            history=place.root,
            day=day,
            buckets=plan.buckets,
            labelled=labelled,
        )


def _spark_order(order: NightlyOrder, plan: NightlyPlan, place: Place, scratch: Path) -> SparkOrder:
    days = [day.isoformat() for day in plan.plan.days]
    options = ["--history", place.url, "--zone", plan.zone, "--keep", str(order.keep_days)]
    return SparkOrder(
        master=order.master,
        conf=order.conf,
        arguments=[*options, *days],
        scratch=scratch,
        timeout_seconds=order.timeout_seconds,
    )


def _publish(
    place: Place,
    plan: NightlyPlan,
    store: BaselineRunStore,
    now: datetime,
    report: Reporter,
) -> tuple[Published | None, date | None]:
    """Publish the last run, also one that an earlier call could not publish."""
    with _store_errors(place):
        last = last_run(place, date.max)
    if last is None:
        return None, None
    run = last.run
    where = RunPlace(files=place.files, history=place.root, day=run.day, run_id=run.id)
    published = store.publish(where, plan.cluster, now)
    report(
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
def _store_errors(place: Place) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        message = f"history at {shown_url(place.url)}: {exc}"
        raise StoreError(message, retryable=True) from exc


@contextmanager
def lock_out_others(data_directory: Path, place: Place) -> Iterator[None]:
    """Lock this history, if it is on this machine, and this data directory."""
    with ExitStack() as held:
        held.enter_context(alone(data_directory))
        here = Path(place.root)
        if isinstance(place.files, LocalFileSystem) and here.is_dir():
            held.enter_context(alone(here))
        yield


@contextmanager
def scratch_folder(data_directory: Path) -> Iterator[Path]:
    """Give a folder for Spark's own files; those of killed runs are removed first."""
    every = data_directory / SCRATCH
    shutil.rmtree(every, ignore_errors=True)
    scratch = every / uuid4().hex
    try:
        yield scratch
    finally:
        with suppress(OSError):
            shutil.rmtree(every)
