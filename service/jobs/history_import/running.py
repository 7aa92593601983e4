"""Everything that `tidemark history import` does, in order: fetch, pack on Spark, merge.

Nothing of history is changed before all samples are read and packed; each file is then replaced at once. What was
interrupted is begun again by the next call, which adds what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from rules.baseline.layout import IMPORTS, RUNS, day_of_folder
from rules.errors import StoreError
from rules.facts.times import EPOCH
from service.history.folder import (
    Described,
    Folder,
    bare_folder,
    find_folder,
    open_folder,
    shown_url,
)
from service.history.importing import Merged, merge
from service.jobs.baseline_run.lock import alone
from service.jobs.baseline_run.reporting import Reporter
from service.jobs.baseline_run.running import lock_out_others, scratch_folder
from service.jobs.baseline_run.spark_process import SparkOrder, run_job
from service.jobs.history_import.exporters import Query
from service.jobs.history_import.fetching import RangeSource, Span, fetch
from service.jobs.history_import.input_files import inspect, with_plain_names
from spark.history_import.order import PARQUET, ImportOrder, InputFile
from spark.places import Place

MODULE: Final = "spark.jobs.history_import"
ORDER: Final = "import.json"  # in the folder of the run
AHEAD: Final = timedelta(minutes=5)  # of our clock, as others may be
MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """The options of `tidemark history import`."""

    files: Sequence[Path]
    queries: Sequence[Query]  # of a Prometheus server
    span: Span | None  # of the queries
    history: str  # the folder of history, as a path or an address
    # Of a new folder; one that is there has to be of the same cluster and zone.
    described: Described
    data_directory: Path
    times_zone: str | None  # of times that name none
    kept: timedelta  # for how long history is kept
    master: str
    conf: Mapping[str, str]
    timeout_seconds: float
    environment: Mapping[str, str]
    dry_run: bool


@dataclass(kw_only=True)
class Imported:
    """What was imported, or would be."""

    series: int = 0
    metrics: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    rejected: Mapping[str, int] = field(default_factory=dict)  # rows by reason
    examples: Mapping[str, str] = field(default_factory=dict)
    packed: int | None = None  # samples; None: it was a dry run, or there was none
    repeated: int = 0
    merged: Merged | None = None
    # The first day that a baseline run has learnt from without these samples.
    learn_from: date | None = None
    problems: list[str] = field(default_factory=list)  # what was left out as a whole
    notes: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether all rows of all files were imported."""
        return not (self.rejected or self.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What an import needs besides its options."""

    now: datetime  # by the wall clock
    report: Reporter  # is called with each event as it happens; see `reporting.line_of`
    pause: Callable[[float], None]  # waits some seconds, before a server is asked again
    # Holds the lock under which days are written.
    folding: Callable[[Folder], AbstractContextManager[None]]


def import_history(
    request: ImportRequest, source: RangeSource | None, here: Surroundings
) -> Imported:
    """Import files and the series of a Prometheus server; None: files only.

    Raises:
        StoreError: history cannot be read or written, or belongs to another cluster or time zone.
        BaselineRunError: Spark failed; nothing was changed.
        ConflictError: a baseline run, or another import, works there.
        CollectError: the server is no Prometheus, or rejects us.
    """
    imported = Imported()
    with _open(request) as folder, scratch_folder(request.data_directory) as scratch:
        scratch.mkdir(parents=True, exist_ok=True)
        files = _inputs(request, scratch, imported, here.report)
        if source is not None:
            files += _fetch(request, source, scratch, imported, here)
        if not files:
            return imported
        with _staging(folder, request) as staging:
            order = _order(request, folder, files, staging, here.now)
            (scratch / ORDER).write_text(order.to_json(), encoding="utf-8")
            for event in run_job(_spark_order(request, scratch), request.environment):
                here.report(event)
                _note(event, imported)
            if imported.packed:
                _merge(folder, staging, imported, here)
    return imported


@contextmanager
def _open(request: ImportRequest) -> Iterator[Folder]:
    """Give the folder of history, and keep others away from it; a dry run makes none."""
    if request.dry_run and find_folder(request.history) is None:
        with alone(request.data_directory):
            yield bare_folder(request.history, request.described)
        return
    folder = open_folder(request.history, request.described)
    try:
        place = Place(request.history)
    except OSError as exc:
        raise StoreError(str(exc), retryable=False) from exc
    with lock_out_others(request.data_directory, place):
        yield folder


def _inputs(
    request: ImportRequest, scratch: Path, imported: Imported, report: Reporter
) -> list[InputFile]:
    inspected = inspect(request.files, has_zone=request.times_zone is not None)
    imported.problems += inspected.problems
    imported.notes += inspected.notes
    for why in (*inspected.problems, *inspected.notes):
        report({"event": "file", "why": why})
    return with_plain_names(inspected.files, scratch)


def _fetch(
    request: ImportRequest,
    source: RangeSource,
    scratch: Path,
    imported: Imported,
    here: Surroundings,
) -> list[InputFile]:
    if request.span is None:
        return []
    fetched = fetch(
        source,
        request.queries,
        request.span,
        scratch,
        cluster=request.described.cluster,
        report=here.report,
        pause=here.pause,
    )
    if fetched.backward_steps:
        fetched.notes.append(f"{fetched.backward_steps} offsets went back: no rate is made of that")
    imported.problems += fetched.problems
    imported.notes += fetched.notes
    for why in (*fetched.problems, *fetched.notes):
        here.report({"event": "server", "why": why})
    return [InputFile(path=str(path), format=PARQUET) for path in fetched.files]


@contextmanager
def _staging(folder: Folder, request: ImportRequest) -> Iterator[str]:
    """Give a folder below that of history for packed days; those of killed imports are removed too."""
    if request.dry_run:
        yield ""
        return
    folder.remove_folder(IMPORTS)
    try:
        yield f"{IMPORTS}/import={uuid4().hex[:12]}"
    finally:
        folder.remove_folder(IMPORTS)


def _order(
    request: ImportRequest,
    folder: Folder,
    files: Sequence[InputFile],
    staging: str,
    now: datetime,
) -> ImportOrder:
    described = folder.described
    return ImportOrder(
        files=tuple(files),
        history=Place(request.history).url,
        staging=staging,
        cluster=described.cluster,
        buckets=described.buckets,
        zone=described.time_zone,
        not_before_ms=(now - request.kept - EPOCH) // MILLISECOND,
        not_after_ms=(now + AHEAD - EPOCH) // MILLISECOND,
        times_zone=request.times_zone,
        dry_run=request.dry_run,
    )


def _spark_order(request: ImportRequest, scratch: Path) -> SparkOrder:
    return SparkOrder(
        master=request.master,
        conf=request.conf,
        arguments=[ORDER],
        scratch=scratch,
        timeout_seconds=request.timeout_seconds,
        module=MODULE,
    )


def _note(event: Mapping[str, Any], imported: Imported) -> None:
    match event["event"]:
        case "survey":
            imported.series = event["series"]
            imported.metrics = event["metrics"]
            imported.rejected = event["rejected"]
            imported.examples = event["examples"]
        case "packed":
            imported.packed, imported.repeated = event["samples"], event["repeated"]


def _merge(folder: Folder, staging: str, imported: Imported, here: Surroundings) -> None:
    def progress(day: date, done: int, of: int) -> None:
        here.report({"event": "merging", "day": day.isoformat(), "done": done, "of": of})

    with here.folding(folder):
        imported.merged = merge(folder, staging, progress)
    days, runs = imported.merged.days, folder.names(RUNS)
    if days and any((day_of_folder(run) or date.min) >= days[0] for run in runs):
        imported.learn_from = days[0]
    if imported.merged.collided:
        imported.problems.append(
            f"{imported.merged.collided} series are left out: others in {shown_url(folder.url)} have their ids"
        )
