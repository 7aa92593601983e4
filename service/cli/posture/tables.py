"""Posture as tables for a person: what is wrong first, by check, then what is not known, then what only clients know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rules.posture.line import PostureVerdict
from service.terminal.parts import Line, Part, Row, Table, long, not_seen, short
from service.terminal.words import time

FIXES: Final = 3  # commands of a check that are shown; -o json has that of each line
CLIENT_ONLY: Final = "client_only"
STYLES: Final = {
    PostureVerdict.WRONG: "bold yellow",
    PostureVerdict.UNKNOWN: "yellow",
    PostureVerdict.RIGHT: "green",
}
REASSIGNMENT: Final = "--reassignment-json-file"


def _name(row: Row) -> str:
    """Return the name of the subject; that of a broker is its id."""
    name = str(row["name"])
    return f"broker {name}" if row["scope"] == "broker" and name.isdecimal() else name


COLUMNS: Final = (
    long("name", _name),
    long("setting"),
    long("value"),
    short("source"),
    short("reason"),
)


def render(document: Row) -> Iterator[Part]:
    """Yield the lines by verdict and check."""
    yield _head(document)
    lines = [line for line in document["lines"] if line["reason"] != CLIENT_ONLY]
    for verdict in PostureVerdict:
        chosen = [line for line in lines if line["verdict"] == verdict]
        for check in dict.fromkeys(line["check"] for line in chosen):
            yield from _check([line for line in chosen if line["check"] == check])
    yield from _clients([line for line in document["lines"] if line["reason"] == CLIENT_ONLY])
    yield from not_seen(f"{gap['what']}: {gap['why']}" for gap in document["gaps"])


def _head(document: Row) -> Line:
    checks = document["checks"]
    wrong = sum(1 for check in checks if check["wrong"])
    unknown = sum(1 for c in checks if c["unknown"] and not c["wrong"] and not c["client_only"])
    right = sum(1 for check in checks if check["right"] and not check["wrong"] + check["unknown"])
    words = f"  checks: {wrong:,} wrong, {unknown:,} not known, {right:,} right  "
    if not document["is_current"]:
        end = ("NOT CURRENT", "bold yellow")
    elif document["complete"]:
        end = ("complete", "green") if document["server"] is None else ("current", "green")
    else:
        end = ("not complete", "bold yellow")
    return Line(((f"as of {time(document['as_of']) or 'never'}", "bold"), words, end))


def _check(lines: Sequence[Row]) -> Iterator[Part]:
    """Yield the lines of one check that have the same verdict."""
    verdict, check = lines[0]["verdict"], lines[0]["check"]
    severities = ", ".join(_distinct(line["severity"] for line in lines if line["severity"]))
    kind = f" ({severities})" if severities else ""
    yield Line("")
    yield Line(
        ((check, "bold"), f"  {len(lines):,} ", (f"{verdict}{kind}", STYLES[verdict]),
         f"  docs/{lines[0]['page']}")
    )  # fmt: skip
    reasons = {line["consequence"]: line["reason"] for line in lines if line["consequence"]}
    for consequence, reason in list(reasons.items())[:FIXES]:
        yield Line(f"  {reason}: {consequence}" if len(reasons) > 1 else f"  {consequence}")
    yield Table(columns=COLUMNS, rows=lines, style=lambda row: STYLES[row["verdict"]])
    fixes = _distinct(line["fix"] for line in lines)
    for fix in fixes[:FIXES]:
        yield Line(f"  {fix}")
    if any(REASSIGNMENT in fix for fix in fixes):
        yield Line("  what the file has to contain: docs/posture/topic_replication.md")
    if len(fixes) > FIXES:
        yield Line(f"  and likewise for {len(fixes) - FIXES:,} more: -o json has every command")


def _clients(lines: Sequence[Row]) -> Iterator[Part]:
    if not lines:
        return
    yield Line("")
    yield Line(
        "CANNOT BE SEEN FROM HERE: compare these lines with the configuration of each client, or judge its file: "
        "tidemark posture --client-config FILE"
    )
    yield Table(
        columns=(
            long("clients", "name"),
            long("configuration", "fix"),
            long("what can go wrong", "consequence"),
        ),
        rows=lines,
    )


def _distinct(texts: Iterable[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text]
