"""`tidemark rules`: the catalogue of rules, and what to do about a breach. It needs no service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from service.terminal.answer import print_answer
from service.terminal.formats import output_option
from service.terminal.parts import Facts, Line, Part, Row, Table, long, short
from service.terminal.typed_names import complete_name

if TYPE_CHECKING:
    from rules.catalogue.all_rules import Declared

STYLES: Final = {"critical": "bold red", "warning": "yellow"}
COLUMNS: Final = (
    short("rule", "id"),
    short("severity"),
    short("judges", "subject"),
    long("reports", "summary"),
)
HEADINGS: Final = {  # of a rule's declaration, by their name in JSON; in the order of the night
    "runbook": "Runbook",
    "false_positives": "False positives",
    "detects": "Detects",
    "why_it_matters": "Why it matters",
    "thresholds": "Thresholds",
    "inputs": "Inputs",
}


@click.group("rules")
def command() -> None:
    """Show the rules, what they detect, and what to do about a breach.

    They are those of this version; no service and no cluster is queried.

    \b
    Examples:
      tidemark rules ls
      tidemark rules ls --severity critical
      tidemark rules show sequence_gap_loss
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command("ls")
@click.option(
    "--severity", type=click.Choice(["critical", "warning", "info"]), help="Only these, at worst."
)
@output_option
def ls(severity: str | None, **options: Any) -> None:
    """List the rules, the most severe first.

    \b
    Examples:
      tidemark rules ls --severity critical
      tidemark rules ls -o json | jq -r '.rules[].id'
    """  # noqa: D301 - see above
    rows = [row for row in map(_row, _declared()) if severity in (None, row["severity"])]
    print_answer({"rules": rows}, [_table(rows)], options)


@command.command("show")
@click.argument("rule")
@output_option
def show(rule: str, **options: Any) -> None:
    """Show one rule whole: the runbook first. Exits with 6 if there is no such rule.

    \b
    Examples:
      tidemark rules show committed_records_lost
      tidemark rules show transaction_hanging -o json | jq -r .runbook
    """  # noqa: D301 - see above
    declared = {each.meta.rule_id: each for each in _declared()}
    row = _whole(declared[complete_name(rule, declared, "rule")])
    print_answer(row, _parts(row), options)


def _declared() -> Sequence[Declared]:
    from rules.catalogue.all_rules import EVERY  # noqa: PLC0415 - keeps `--help` fast

    return EVERY


def _row(rule: Declared) -> dict[str, Any]:
    meta = rule.meta
    return {
        "id": meta.rule_id,
        "severity": str(meta.severity),
        "milder": {reason: str(severity) for reason, severity in meta.milder},
        "kind": str(meta.kind),
        "subject": str(meta.subject),
        "for_seconds": meta.for_.total_seconds(),
        "is_critical": meta.is_critical,
        "summary": meta.summary,
    }


def _whole(rule: Declared) -> dict[str, Any]:
    from rules.pages import sections_of  # noqa: PLC0415 - keeps `--help` fast

    sections = sections_of(rule.text)
    texts = {name: sections.get(heading) for name, heading in HEADINGS.items()}
    return {**_row(rule), "reasons": [str(reason) for reason in rule.reasons], **texts}


def _table(rows: Sequence[Row]) -> Table[Row]:
    return Table(columns=COLUMNS, rows=rows, style=lambda row: STYLES.get(row["severity"]))


def _parts(row: Row) -> Iterator[Part]:
    milder = [f"{severity} if {reason}" for reason, severity in row["milder"].items()]
    yield Line(f"{row['id']}  {row['severity']}", STYLES.get(row["severity"], "bold"))
    yield Line(f"  {row['summary']}")
    yield Facts(
        [
            ("judges", f"each {row['subject']}"),
            ("kind", row["kind"]),
            ("milder", "; ".join(milder) or None),
            ("fires after", f"{row['for_seconds']:g} s"),
            ("reasons", ", ".join(row["reasons"])),
        ]
    )
    for name, heading in HEADINGS.items():
        yield Line(heading.upper(), "bold")
        yield from (Line(f"  {line}") for line in (row[name] or "").splitlines())
