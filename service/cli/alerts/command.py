"""`tidemark alerts`: list the alerts of a running Tidemark, acknowledge them, close events."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from rules.errors import RequestError
from rules.verdict import SEVERITIES
from service.cli import deliveries
from service.cli.alerts.next_steps import next_steps, runbook_command
from service.cli.events.relating import changes_of_alert, render_changes
from service.cli.server import listing
from service.cli.server.server_options import client_of, server_options, server_options_for
from service.terminal.answer import print_answer
from service.terminal.formats import is_limited
from service.terminal.parts import Facts, Line, Part, Row, long, short, time_column
from service.terminal.typed_names import not_there
from service.terminal.words import few, in_words, text, time, utc

if TYPE_CHECKING:
    from service.cli.server.api_client import ApiClient

CHOICES: Final = ("active", "pending", "firing", "resolved", "all")
STATES: Final = ("firing", "pending", "resolved")
STYLES: Final = {"critical": "bold red", "warning": "bold yellow"}
FINGERPRINT: Final = re.compile("[0-9a-f]{4,16}")  # its first digits suffice
ALL_DIGITS: Final = 16
RULE_PAGES: Final = "docs/rules"  # of the repository
LONGEST: Final = 1000  # characters of one value of the evidence on a terminal
FEEDBACK: Final = {"confirmed": "an incident", "false_alarm": "a false alarm"}
SHOWN_ELSEWHERE: Final = ("alertname", "severity", "topic_id", "incident")  # labels


def _about(row: Row) -> str:
    return listing.labels_text(row.get("labels"), without=SHOWN_ELSEWHERE)


def _notified(row: Row) -> str:
    """Return the receivers, or why they are not notified."""
    parts = []
    if row.get("acknowledged"):
        parts.append(f"acknowledged by {row['acknowledged'].get('by')}")
    if row.get("silenced_by"):
        parts.append("silenced")
    if row.get("inhibited_by"):
        parts.append("explained by another")
    return ", ".join(parts) or ", ".join(row.get("receivers") or ()) or "nobody"


def _style(row: Row) -> str | None:
    return STYLES.get(str(row.get("severity"))) if row.get("state") == "firing" else None


ALERTS: Final = listing.Resource(
    path="alerts",
    name="alerts",
    columns=(
        short("state"),
        short("severity"),
        long("alert", "rule"),
        long("about", _about),
        time_column("since", "fired_at", "active_at"),
        long("notified", _notified),
        short("fingerprint"),
    ),
    style=_style,
)


@click.group("alerts")
def command() -> None:
    """Show alerts and their notifications; acknowledge an alert, or close an event.

    Queries a running `tidemark serve`. docs/alerts.md says how alerts begin, end and are delivered.

    \b
    Examples:
      tidemark alerts ls
      tidemark alerts show 0123456789abcdef
      tidemark alerts ack 0123456789abcdef --comment 'looking at broker 2'
      tidemark alerts close 0123456789abcdef --why 'records were written again'
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


def _fingerprints(
    ctx: click.Context, param: click.Parameter, values: str | tuple[str, ...]
) -> str | tuple[str, ...]:
    del ctx, param
    for value in (values,) if isinstance(values, str) else values:
        if not FINGERPRINT.fullmatch(value):
            raise click.BadParameter(
                f"{value!r} is no fingerprint: 16 hexadecimal digits, as `tidemark alerts ls` shows, or "
                "the first of them, at least 4"
            )
    return values


ONE: Final = click.argument("name", metavar="FINGERPRINT", callback=_fingerprints)
MANY: Final = click.argument(
    "names", metavar="FINGERPRINT...", nargs=-1, required=True, callback=_fingerprints
)


@command.command("ls")
@click.option(
    "--state", type=click.Choice(CHOICES), default="active", show_default=True,
    help="active: pending or firing.",
)  # fmt: skip
@click.option(
    "--severity",
    type=click.Choice([each.value for each in SEVERITIES]),
    help="Only of this severity.",
)
@click.option("--rule", metavar="ID", help="Only of this rule, by its id in `docs/rules/`.")
@click.option("--receiver", metavar="NAME", help="Only alerts that this receiver gets.")
@listing.limit_option
@server_options
def ls(**options: Any) -> int:
    """List alerts, the newest first.

    The column "notified" has the receivers, or why they get no notification: the alert is
    acknowledged, silenced, or explained by another alert. Exits with 1 if the list is not current.

    \b
    Examples:
      tidemark alerts ls
      tidemark alerts ls --state firing --severity critical
      tidemark alerts ls --state all --rule committed_records_lost
      tidemark alerts ls -o json | jq -r '.alerts[] | select(.acknowledged == null) | .fingerprint'
    """  # noqa: D301 - see above
    alerts = listing.query_list(ALERTS, options, "state", "severity", "rule", "receiver")
    print_answer(alerts.document("alerts"), render_list(alerts), options)
    return alerts.exit_code


@command.command()
@ONE
@server_options
def show(name: str, **options: Any) -> None:
    """Show one alert: what it is, the rule's page, the next commands, and its notifications.

    What changed in the cluster from an hour before it, of its topic, of brokers and of the whole cluster, is listed too.

    \b
    Examples:
      tidemark alerts show 0123456789abcdef
      tidemark alerts show 0123456789abcdef -o json | jq '.steps'
    """  # noqa: D301 - see above
    with client_of(options) as api:
        fingerprint = find_alert(api, name)
        document = listing.fetch(api, f"alerts/{fingerprint}", f"alert {fingerprint}")
        document = {**document, "changes": changes_of_alert(api, document["alert"])}
    print_answer(document, render_details(document, options["server"]), options)


@command.command()
@MANY
@click.option("--comment", default="", metavar="TEXT", help="A note for your colleagues.")
@click.option("--confirmed", is_flag=True, help="It is an incident.")
@click.option("--false-alarm", is_flag=True, help="It is none.")
@server_options_for("ack")
def ack(
    names: Sequence[str], *, comment: str, confirmed: bool, false_alarm: bool, **options: Any
) -> None:
    """Acknowledge alerts: they still fire, but their notifications are not repeated.

    A further occurrence or a higher severity is notified again, and so is the end.

    With --confirmed or --false-alarm say what the last firing was, also after it has resolved: baseline runs that are
    made from then on do not learn from an incident, and learn from a false alarm. What was said before is
    replaced. An alert that still fires is acknowledged too, unless somebody has done so.

    \b
    Examples:
      tidemark alerts ack 0123456789abcdef
      tidemark alerts ack 0123456789abcdef --false-alarm --comment 'a load test'
      tidemark alerts ack 0123456789abcdef 0a1b2c3d4e5f6071 --comment 'broker 2 is being replaced'
    """  # noqa: D301 - see above
    if confirmed and false_alarm:
        raise click.UsageError("--confirmed and --false-alarm exclude each other")
    feedback = "confirmed" if confirmed else "false_alarm" if false_alarm else None
    with client_of(options, scope="ack") as api:
        for name in names:
            with listing.about(name):
                alert = find_alert(api, name)
                if feedback is None or _give_feedback(api, alert, feedback, comment):
                    answer = api.change("POST", f"alerts/{alert}/acknowledge", {"comment": comment})
                    by = answer.document["acknowledged"]["by"]
                    click.echo(f"{alert} is acknowledged by {by}")


def _give_feedback(api: ApiClient, name: str, feedback: str, comment: str) -> bool:
    """Say what the last firing of an alert was; return whether it fires, and nobody has acknowledged it."""
    body = {"feedback": feedback, "comment": comment}
    done = api.change("POST", f"alerts/{name}/feedback", body).document
    click.echo(f"{name} is {FEEDBACK[feedback]}, by {done['feedback']['by']}")
    return bool(done["state"] == "firing" and done["acknowledged"] is None)


@command.command()
@MANY
@click.option("--feedback", is_flag=True, help="Withdraw what was said of it instead.")
@server_options_for("ack")
def unack(names: Sequence[str], *, feedback: bool, **options: Any) -> None:
    """Withdraw acknowledgements: notifications are repeated again.

    \b
    Examples:
      tidemark alerts unack 0123456789abcdef
      tidemark alerts unack 0123456789abcdef --feedback
    """  # noqa: D301 - see above
    with client_of(options, scope="ack") as api:
        for name in names:
            with listing.about(name):
                alert = find_alert(api, name)
                api.change("DELETE", f"alerts/{alert}/{'feedback' if feedback else 'acknowledge'}")
            what = "marked as anything" if feedback else "acknowledged"
            click.echo(f"{alert} is no longer {what}")


@command.command()
@MANY
@click.option("--why", required=True, metavar="TEXT", help="What was done; the audit keeps it.")
@server_options_for("ack")
def close(names: Sequence[str], *, why: str, **options: Any) -> None:
    """Close events that somebody has dealt with.

    Only events can be closed (docs/alerts.md lists them); a state ends by itself. The next round
    ends the finding and notifies the receivers.

    \b
    Examples:
      tidemark alerts close 0123456789abcdef --why 'records were written again from the copy'
    """  # noqa: D301 - see above
    with client_of(options, scope="ack") as api:
        for name in names:
            with listing.about(name):
                alert = find_alert(api, name)
                api.change("POST", f"alerts/{alert}/close", {"why": why})
            click.echo(f"{alert} will be closed by the next round")


def find_alert(api: ApiClient, name: str) -> str:
    """Return the fingerprint that begins so, of active alerts before others; a whole one is not looked up.

    Raises:
        NotThereError: none begins so.
        RequestError: several do, which are named with their rules.
    """
    if len(name) == ALL_DIGITS:
        return name
    rules: dict[str, Any] = {}
    for state in ("active", "all"):
        alerts = [alert for page in api.pages("alerts", state=state) for alert in page["items"]]
        rules = {str(alert["fingerprint"]): alert.get("rule") for alert in alerts}
        matches = [fingerprint for fingerprint in rules if fingerprint.startswith(name)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            named = few([f"{fingerprint} ({rules[fingerprint]})" for fingerprint in matches])
            raise RequestError(f"{name} is the beginning of several alerts: {named}")
    raise not_there(name, list(rules), "alert", hint="`tidemark alerts ls --state all` lists them")


def render_list(alerts: listing.Listed) -> Iterator[Part]:
    """Yield the time of a list and the number of alerts by state, the alerts, and the next command."""
    counts = alerts.page.get("counts") or Counter(str(row.get("state")) for row in alerts.rows)
    summary = ", ".join(f"{counts[state]:,} {state}" for state in STATES if counts.get(state))
    age = alerts.page.get("age_seconds")
    ago = f" ({age:.0f} s ago)" if isinstance(age, (int, float)) else ""
    is_current = alerts.page["is_current"]
    yield Line((
        (f"as of {time(alerts.page['as_of']) or 'never'}{ago}", "bold"),
        f"  {summary or 'no alert'}  ",
        ("current", "green") if is_current else ("NOT CURRENT", "bold yellow"),
    ))  # fmt: skip
    if alerts.rows:
        yield ALERTS.table(alerts.rows)
        yield from listing.more_rows(alerts)
        yield Line("Details and next steps: tidemark alerts show FINGERPRINT")


def render_details(document: Row, server: str) -> Iterator[Part]:
    """Yield all details of one alert: facts, next commands, history, notifications."""
    alert = document["alert"]
    state = text(alert.get("state")).upper()
    head = f"{state} {alert.get('severity')} {alert.get('rule')}  {_about(alert)}"
    yield Line(head, _style(alert) or "bold")
    yield Facts(_facts(document, server))
    steps = next_steps(alert, server)
    if steps:
        yield Line("NEXT", "bold")
        yield from (Line(f"  {step}") for step in steps)
    if document.get("steps"):
        yield Line("HISTORY", "bold")
        yield Facts([(utc(step.get("at")), _step(step)) for step in document["steps"]])
    yield from render_changes(document.get("changes", ()))
    if document.get("notified"):
        yield Line("NOTIFICATIONS, newest first", "bold")
        yield deliveries.DELIVERIES.table(document["notified"])
    else:
        yield Line("No notification was sent.")


def _facts(document: Row, server: str) -> list[tuple[str, object]]:
    """Return labels and values; an absent value is left out."""
    alert = document["alert"]
    rule = alert.get("rule")
    page = document.get("runbook_url") or f"{RULE_PAGES}/{rule}.md"
    return [
        ("what", alert.get("summary")),
        ("reason", alert.get("reason")),
        ("breach since", time(alert.get("active_at"))),
        ("firing since", time(alert.get("fired_at"))),
        ("ended", _ended(alert)),
        *((f"  {name}", text) for name, text in evidence_lines(alert)),
        ("rule page", page),
        ("runbook", runbook_command(alert, server)),
        ("receivers", ", ".join(alert.get("receivers") or ()) or "none: nobody is notified"),
        ("silenced by", ", ".join(alert.get("silenced_by") or ()) or None),
        ("explained by", alert.get("inhibited_by")),
        ("acknowledged", _remark(alert.get("acknowledged"), "comment")),
        ("feedback", _feedback(alert.get("feedback"))),
        ("closing", _closing(document.get("closing"))),
        ("finding", alert.get("finding_id")),
        ("fingerprint", alert.get("fingerprint")),
        ("seen last", time(alert.get("updated_at"))),
    ]


def evidence_lines(alert: Row) -> list[tuple[str, str | None]]:
    """Return the evidence of an alert by name, each value in words; None where it is not known."""
    evidence = alert.get("evidence") or {}
    return [(name, _value(value)) for name, value in evidence.items()]


def _ended(alert: Row) -> str | None:
    ended = time(alert.get("resolved_at"))
    return None if ended is None else f"{ended} ({text(alert.get('end_reason'))})"


def _remark(row: Row | None, words: str) -> str | None:
    if not row:
        return None
    remark = f": {row[words]}" if row.get(words) else ""
    return f"by {row.get('by')}, {time(row.get('at'))}{remark}"


def _feedback(row: Row | None) -> str | None:
    remark = _remark(row, "comment")
    return None if row is None or remark is None else f"{FEEDBACK[row['feedback']]}, {remark}"


def _closing(row: Row | None) -> str | None:
    remark = _remark(row, "why")
    if row is None or remark is None:
        return None
    done = time(row.get("done_at"))
    return f"{remark}; {'the next round does it' if done is None else f'done {done}'}"


def _step(step: Row) -> str:
    return f"UTC  {text(step.get('step'))}  {text(step.get('reason'))}"


def _value(value: object) -> str | None:
    words = in_words(value)
    if words is None:
        return None
    is_whole = len(words) <= LONGEST or not is_limited()
    return words if is_whole else f"{words[:LONGEST]}… (-o wide)"
