"""A backtest for a person: a line per metric, the openings, and what two settings differ in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from collectors.naming import counted
from service.cli.baselines.words import number
from service.terminal.parts import Facts, Line, Part, Row, Table, long, short, time_column
from service.terminal.words import ABSENT, text, utc

NOW: Final = "settings in force"


def parts(document: Row) -> Iterator[Part]:
    """Yield what is printed."""
    yield Line(heading(document), "bold")
    for result in document["results"]:
        yield Line("")
        if len(document["results"]) > 1:
            yield Line(settings_of(result), "bold")
        yield from map(Line, summary(result))
        yield from _labels(result)
    for line in without_data(document):
        yield Line(line, "yellow")
    for title, openings in lists(document):
        yield Line("")
        yield Line(f"{title}: {counted(len(openings), 'opening')}", "bold")
        if openings:
            yield _table(openings)


def heading(document: Row) -> str:
    """Return what was replayed."""
    return (
        f"backtest of {document['cluster']}, {document['from']} to {document['to']} "
        f"({counted(document['days'], 'day')}, {document['time_zone']}), learnt from {document['learnt_from']} on"
    )


def settings_of(result: Row) -> str:
    """Return what a result was replayed with."""
    return ", ".join(result["settings"]) or NOW


def summary(result: Row) -> list[str]:
    """Return a sentence per metric, and one for all of them."""
    metrics: Sequence[Mapping[str, Any]] = result["metrics"]
    if not metrics:
        return ["nothing was judged: no series had a band and samples"]
    lines = [_fired(f"{_name_of(metric)} would", metric) for metric in metrics]
    return lines if len(metrics) == 1 else [*lines, _fired("In all it would", result["total"])]


def _name_of(metric: Row) -> str:
    rule = metric["rule"]
    return metric["metric"] if rule is None else f"{rule} ({metric['metric']})"


def lists(document: Row) -> list[tuple[str, Sequence[Row]]]:
    """Return the lists of openings with their titles: of two settings, what only one of them has."""
    if len(document["results"]) == 1:
        return [("openings", document["results"][0]["openings"])]
    changed = settings_of(document["results"][1])
    return [
        (f"only with the {NOW}", document["only_now"]),
        (f"only with {changed}", document["only_changed"]),
    ]


def labels_of(result: Row) -> list[tuple[str, object]]:
    """Return how well the openings fit labelled incidents; nothing if there are no labels."""
    labels = result["labels"]
    if labels is None:
        return []
    return [
        ("incidents", f"{labels['found']} of {labels['incidents']} labelled ones opened"),
        ("precision", number(labels["precision"])),
        ("recall", number(labels["recall"])),
        ("event F1", number(labels["event_f1"])),
        ("delay", _delay(labels["median_delay_seconds"])),
    ]


def without_data(document: Row) -> list[str]:
    """Return of which days data is missing, and whose names, because it waits or a file is damaged."""
    return [
        *(
            f"{day} is not folded yet: some of its samples are left out"
            for day in document["not_folded"]
        ),
        *(
            f"no data of {day['day']} in bucket {day['bucket']}, as its file is damaged: {day['why']}"
            for day in document["damaged"]
        ),
        *(
            f"some series have no names, and their labels may not count: {part} is damaged"
            for part in document["unnamed"]
        ),
    ]


def band(opening: Row) -> str:
    """Return the usual range at the worst sample."""
    return f"{number(opening['usual']['least'])} to {number(opening['usual']['most'])}"


def closed(opening: Row) -> str:
    """Return when it closed."""
    return utc(opening["closed_at"]) if opening["closed_at"] else "still open"


def _fired(subject: str, totals: Row) -> str:
    rate = totals["openings_per_series_week"]
    each = "" if rate is None else f", {number(rate)} per series and week"
    times = counted(totals["openings"], "time")
    return f"{subject} have fired {times}: {totals['series']:,} series judged{each}"


def _labels(result: Row) -> Iterator[Part]:
    pairs = labels_of(result)
    if pairs:
        yield Facts(pairs)


def _delay(seconds: float | None) -> str:
    return ABSENT if seconds is None else f"{number(seconds / 60)} min (median)"


def _table(openings: Sequence[Row]) -> Table[Row]:
    return Table(
        columns=(
            time_column("opened", "opened_at"),
            short("closed (UTC)", closed),
            long("series", lambda opening: text(opening["series"])),
            short("score", lambda opening: number(opening["score"])),
            long("why", lambda opening: text(opening["explanation"])),
        ),
        rows=openings,
    )
