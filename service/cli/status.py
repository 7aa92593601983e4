"""`tidemark status`: what is wrong, whether it is loss, and what is not seen, on one screen.

Its document is made of what the API answers: a Tidemark that is older gives fewer fields, and what it does not
say is UNKNOWN here, never "nothing is wrong".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import click

from rules.errors import CollectError
from rules.facts.sequence_verdicts import Phase, SequenceClass
from rules.verdict import SEVERITIES
from service.cli.loss.queries import COMMITTED_LOST, RESTORED, list_losses
from service.cli.sequence.queries import NO_SOURCE, list_sequences
from service.cli.server.listing import labels_text, severity_rank
from service.cli.server.remembering import RememberingApi
from service.cli.server.report import Api, blind_spots, read_gaps
from service.cli.server.server_options import client_of, options_to, server_options
from service.terminal.answer import print_answer
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import Format, chosen_format, is_limited
from service.terminal.parts import Facts, Line, Part, Row, Table, long, not_seen, short
from service.terminal.words import ABSENT, duration, time, timestamp_of

STYLES: Final = {"critical": "bold red", "warning": "yellow"}
MOST: Final = 1000  # alerts that are read: a page
SHOWN: Final = 10  # of them on a terminal, and of rules that cannot judge
LATE_ROUNDS: Final = 3  # so many intervals without a round are too many
NOT_LABELS: Final = ("alertname", "severity", "topic_id", "incident", "cluster")


class Loss(StrEnum):
    """Whether committed records are lost, as far as is known; the worst first."""

    LOST = "lost"
    POSSIBLE = "possible"
    UNKNOWN = "unknown"  # the rules that would say so cannot judge everything
    NONE = "none"


WORST_FIRST: Final = tuple(Loss)
LOSS_WORDS: Final = {
    Loss.LOST: ("YES: committed records are lost", "bold red"),
    Loss.POSSIBLE: ("PERHAPS: records may be lost", "bold red"),
    Loss.UNKNOWN: ("NOT KNOWN: not everything is seen that would show it", "bold yellow"),
    Loss.NONE: ("no", "green"),
}
PARTLY: Final = ("no, as far as offsets and leaders show", "green")  # sequences are not seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What a service says of itself and of its cluster at one time."""

    server: str
    status: Row
    alerts: Sequence[Row]  # that fire, the worst and then the oldest first
    counts: Mapping[str, int] | None  # of firing alerts by severity; None: they cannot be read
    has_more: bool  # alerts than were read
    loss: Loss  # by offsets, leaders and sequences
    sequence_loss: Loss  # by sequences alone
    notes: Sequence[str]  # what is not seen, and need not be
    unknown_rules: Sequence[Row]  # rule, and how many of its subjects it cannot judge
    errors: Sequence[str]
    gaps: Sequence[Row]

    @property
    def is_complete(self) -> bool:
        """Whether everything is seen; brokers' logs need not be: many clusters give none."""
        return not (self.errors or self.unknown_rules or set(self.notes) - {NO_SOURCE})

    @property
    def document(self) -> dict[str, Any]:
        """Return the JSON document: keys may be added, never renamed."""
        return {
            "server": self.server,
            "cluster": self.status.get("cluster"),
            "version": self.status.get("version"),
            "as_of": self.status["as_of"],
            "is_current": self.status["is_current"],
            "complete": self.is_complete,
            "loss": self.loss.value,
            "loss_by_sequences": self.sequence_loss.value,
            "round": self.status.get("round"),
            "firing": None if self.counts is None else dict(self.counts),
            "has_more_alerts": self.has_more,
            "alerts": list(self.alerts),
            "unknown_rules": list(self.unknown_rules),
            "errors": list(self.errors),
            "notes": list(self.notes),
            "gaps": list(self.gaps),
        }

    def exit_code(self, *, of_findings: bool) -> ExitCode:
        """Return INCOMPLETE if something is not seen; `of_findings` puts what is wrong before that."""
        if of_findings and self.loss in (Loss.LOST, Loss.POSSIBLE):
            return ExitCode.LOST
        if of_findings and self.alerts:
            return ExitCode.FIRING
        return ExitCode.OK if self.is_complete else ExitCode.INCOMPLETE


@click.command("status")
@click.option(
    "--exit-code", "of_findings", is_flag=True,
    help="Exit with 12 if records are lost or may be, else with 16 if an alert fires.",
)  # fmt: skip
@server_options
def command(*, of_findings: bool, **options: Any) -> int:
    """Show what is wrong, since when, whether it is loss, and what is not seen.

    Exits with 0 if everything is seen, whatever fires, and with 1 if something is not: gaps, an old round, alerts that
    cannot be read, or a rule that cannot judge all of its subjects. Brokers' logs need not be read for 0.
    "LOSS no" is said only if everything is seen that would show a loss.

    \b
    Examples:
      tidemark status
      tidemark status --exit-code || echo 'somebody has to look'
      tidemark --context prod status -o json | jq '.firing'
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    return print_status(options, of_findings=of_findings)


def print_status(options: Mapping[str, Any], *, of_findings: bool = False) -> ExitCode:
    """Query the service that a command's options name, and print the screen; return the exit code."""
    with client_of(options) as api:
        overview = read_overview(api)
    print_answer(overview.document, render(overview), options)
    return overview.exit_code(of_findings=of_findings)


def read_overview(service: Api) -> Overview:
    """Query a service. A list that cannot be read is an error of the answer; without a status there is none.

    Raises:
        CollectError: the status cannot be read.
    """
    api = RememberingApi(service)
    status = api.get("status")
    gaps = read_gaps(api, status)
    errors = [*blind_spots(status, gaps, ()), *_lateness(status)]
    notes: list[str] = []
    page = _alerts(api, errors)
    loss, by_sequences = _loss(api, errors), _sequence_loss(api, notes)
    alerts = sorted(page.get("items") or (), key=_rank)
    return Overview(
        server=api.server,
        status=status,
        alerts=alerts,
        counts=Counter(str(alert.get("severity")) for alert in alerts) if page else None,
        has_more=bool(page.get("next")),
        loss=_worse(loss, by_sequences),
        sequence_loss=by_sequences,
        notes=[note for note in notes if note not in errors],
        unknown_rules=[
            {"rule": rule["rule"], "unknown": rule["unknown"]}
            for rule in status.get("rules") or ()
            if rule.get("unknown")
        ],
        errors=errors,
        gaps=gaps,
    )


def _alerts(api: Api, errors: list[str]) -> Row:
    """Return the page of firing alerts; empty, with an error, if it cannot be read."""
    page: Row = {}
    try:
        page = api.find("alerts", state="firing", limit=MOST) or {}
        if not page:
            errors.append("this Tidemark has no list of alerts: which of them fire is not known")
    except CollectError as exc:
        errors.append(f"which alerts fire is not known: {exc}")
    if page and not page["is_current"]:
        errors.append(f"the alerts are those of {time(page.get('as_of')) or 'no round yet'}")
    return page


def _rank(alert: Row) -> tuple[int, str]:
    return severity_rank(alert.get("severity")), str(alert.get("fired_at"))


def _lateness(status: Row) -> Iterator[str]:
    age, interval = status["round"].get("age_seconds"), status["round"].get("interval_seconds")
    if age is not None and interval and age > LATE_ROUNDS * interval:
        begun = duration(timedelta(seconds=age))
        yield f"the last round began {begun} ago, and one is due every {interval:g} s"


def _loss(api: Api, errors: list[str]) -> Loss:
    """Return what `loss ls` says; its errors are added unless they are there already."""
    try:
        report = list_losses(api, {})
    except CollectError as exc:
        errors.append(f"which records are lost is not known: {exc}")
        return Loss.UNKNOWN
    errors += [error for error in report.errors if error not in errors]
    if report.exit_code is ExitCode.LOST:
        is_certain = any(
            loss.get("class") == COMMITTED_LOST and loss.get("reason") != RESTORED
            for loss in report.losses
        )
        return Loss.LOST if is_certain else Loss.POSSIBLE
    return Loss.NONE if report.exit_code is ExitCode.OK and not errors else Loss.UNKNOWN


def _sequence_loss(api: Api, notes: list[str]) -> Loss:
    """Return what `sequence ls` says. Many clusters give no broker's log: then it is a note, not an error."""
    try:
        report = list_sequences(api, {})
    except CollectError as exc:
        notes.append(f"gaps in sequences are not known: {exc}")
        return Loss.UNKNOWN
    notes += [error for error in report.errors if not error.startswith(" ")]
    losses = [event for event in report.rows if event.get("class") == SequenceClass.LOSS]
    if any(event.get("phase") == Phase.CONFIRMED for event in losses):
        return Loss.LOST
    if losses:
        return Loss.POSSIBLE
    return Loss.NONE if report.exit_code is ExitCode.OK else Loss.UNKNOWN


def _worse(loss: Loss, by_sequences: Loss) -> Loss:
    """Return the worse of both; that sequences are not seen leaves what offsets and leaders show."""
    is_loss = by_sequences in (Loss.LOST, Loss.POSSIBLE)
    return min(loss, by_sequences, key=WORST_FIRST.index) if is_loss else loss


def render(overview: Overview) -> Iterator[Part]:
    """Yield the screen: time of the last round, loss, alerts, what is not seen, what to type."""
    yield from _verdicts(overview)
    if overview.alerts:
        yield _alert_table(overview)
    yield from not_seen(unseen(overview))
    yield Line("NEXT", "bold")
    yield from (Line(f"  {words}") for words in _next(overview))


def _verdicts(overview: Overview) -> Iterator[Part]:
    """Yield whether everything is seen, and loss and alerts; for programs, as facts."""
    cluster, at = str(overview.status.get("cluster")), time(overview.status["as_of"]) or "never"
    seen, loss, firing = (
        words(overview) for words in (completeness_words, loss_words, firing_words)
    )
    if chosen_format() is Format.TSV:
        pairs = (("cluster", cluster), ("as of", at), ("seen", seen[0]))
        yield Facts([*pairs, ("LOSS", loss[0]), ("ALERTS", firing[0])])
        return
    age = overview.status["round"].get("age_seconds")
    ago = "" if age is None else f" ({duration(timedelta(seconds=age))} ago)"
    yield Line(((cluster, "bold"), f"  as of {at}{ago}  ", seen))
    yield Line((("LOSS     ", "bold"), loss))
    yield Line((("ALERTS   ", "bold"), firing))


def _alert_table(overview: Overview) -> Table[Row]:
    now = timestamp_of(overview.status.get("now"))
    hidden = max(len(overview.alerts) - SHOWN, 0) if is_limited() else 0
    return Table(
        columns=(
            short("severity"),
            long("what", what),
            short("for", lambda alert: firing_for(alert, now)),
            short("fingerprint"),
        ),
        rows=overview.alerts[:SHOWN] if hidden else overview.alerts,
        style=lambda alert: STYLES.get(str(alert.get("severity"))),
        caption=f"{hidden:,} more (-o wide)" if hidden else None,
    )


def completeness_words(overview: Overview) -> tuple[str, str]:
    """Return whether everything is seen, with the style of these words."""
    if overview.errors:
        return "NOT COMPLETE", "bold yellow"
    if not overview.is_complete:
        return "not all is seen", "bold yellow"
    return ("complete but for brokers' logs" if overview.notes else "complete"), "green"


def loss_words(overview: Overview) -> tuple[str, str]:
    """Return whether records are lost, with the style of these words."""
    is_partly_known = overview.sequence_loss is Loss.UNKNOWN and overview.loss is Loss.NONE
    return PARTLY if is_partly_known else LOSS_WORDS[overview.loss]


def firing_words(overview: Overview) -> tuple[str, str]:
    """Return how many alerts fire, by severity, with the style of these words."""
    counts = overview.counts
    if counts is None:
        return "NOT KNOWN: which of them fire cannot be read", "bold yellow"
    words = ", ".join(f"{counts[each]:,} {each}" for each in SEVERITIES if each in counts)
    more = "; more than these" if overview.has_more else ""
    unacknowledged = sum(alert.get("acknowledged") is None for alert in overview.alerts)
    mark = f"; {unacknowledged:,} not acknowledged" if unacknowledged else ""
    return (f"firing: {words}{more}{mark}" if words else "none is known to fire"), ""


def what(alert: Row) -> str:
    """Return the rule of an alert and what it is about."""
    about = labels_text(alert.get("labels"), without=NOT_LABELS)
    return f"{alert.get('rule')}" if about == ABSENT else f"{alert.get('rule')}: {about}"


def firing_for(alert: Row, now: datetime | None) -> str:
    """Return for how long an alert has fired at a time of the service."""
    fired = timestamp_of(alert.get("fired_at") or alert.get("active_at"))
    return ABSENT if fired is None or now is None else duration(now - fired)


def unseen(overview: Overview) -> Sequence[str]:
    """Return what is not seen, a line each; one that begins with a space belongs to the one before it."""
    return [*overview.errors, *overview.notes, *_unknown(overview)]


def _unknown(overview: Overview) -> Iterator[str]:
    rules = overview.unknown_rules
    if rules:
        first = ", ".join(f"{rule['rule']} ({rule['unknown']:,})" for rule in rules[:SHOWN])
        more = f" and {len(rules) - SHOWN} more" if len(rules) > SHOWN else ""
        yield f"rules that cannot judge all, and so many subjects: {first}{more}"


def _next(overview: Overview) -> Iterator[str]:
    to = options_to(overview.server)
    if overview.alerts:
        worst = overview.alerts[0].get("fingerprint")
        yield f"tidemark alerts show {worst}{to}"
        yield f"tidemark runbook run {worst}{to}"
    if len(overview.alerts) > SHOWN or overview.has_more:
        yield f"tidemark alerts ls --state firing --limit 0{to}"
    if overview.loss is not Loss.NONE:
        yield f"tidemark loss ls{to}"
    if overview.sequence_loss in (Loss.LOST, Loss.POSSIBLE):
        yield f"tidemark sequence ls{to}"
    if not overview.alerts:
        yield f"tidemark alerts ls --state all{to}"
