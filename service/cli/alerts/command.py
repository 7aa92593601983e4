"""`tidemark alerts`: list the alerts of a running Tidemark, acknowledge them, close events."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import click

from service.cli.options.kafka_options import output_option
from service.cli.server import listing
from service.cli.server.server_options import client_of, server_options, server_options_for
from service.cli.terminal.exit_codes import ExitCode

STATES: Final = ("active", "pending", "firing", "resolved", "all")
SEVERITIES: Final = ("critical", "warning", "info")
FINGERPRINT: Final = re.compile("[0-9a-f]{16}")


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
                f"{value!r} is no fingerprint: 16 hexadecimal digits, as `tidemark alerts ls` shows"
            )
    return values


ONE: Final = click.argument("name", metavar="FINGERPRINT", callback=_fingerprints)
MANY: Final = click.argument(
    "names", metavar="FINGERPRINT...", nargs=-1, required=True, callback=_fingerprints
)


@command.command("ls")
@click.option(
    "--state", type=click.Choice(STATES), default="active", show_default=True,
    help="active: pending or firing.",
)  # fmt: skip
@click.option("--severity", type=click.Choice(SEVERITIES), help="Only of this severity.")
@click.option("--rule", metavar="ID", help="Only of this rule, by its id in `docs/rules/`.")
@click.option("--receiver", metavar="NAME", help="Only alerts that this receiver gets.")
@output_option
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
    filters = {name: options[name] for name in ("state", "severity", "rule", "receiver")}
    with client_of(options) as api:
        alerts = listing.fetch_list(api, "alerts", filters)
        listing.require_receiver(api, alerts, options["receiver"])
    if options["output"] == "json":
        listing.print_json(alerts.document("alerts"))
    else:
        from service.cli.alerts import tables  # noqa: PLC0415 - keeps `--help` fast

        listing.print_parts(tables.render_list(alerts))
    return alerts.exit_code


@command.command()
@ONE
@output_option
@server_options
def show(name: str, **options: Any) -> int:
    """Show one alert: what it is, the rule's page, the next commands, and its notifications.

    \b
    Examples:
      tidemark alerts show 0123456789abcdef
      tidemark alerts show 0123456789abcdef -o json | jq '.steps'
    """  # noqa: D301 - see above
    with client_of(options) as api:
        document = listing.fetch(api, f"alerts/{name}", f"alert {name}")
    if options["output"] == "json":
        listing.print_json(document)
    else:
        from service.cli.alerts import tables  # noqa: PLC0415 - keeps `--help` fast

        listing.print_parts(tables.render_details(document, options["server"]))
    return ExitCode.OK


@command.command()
@MANY
@click.option("--comment", default="", metavar="TEXT", help="A note for your colleagues.")
@server_options_for("ack")
def ack(names: Sequence[str], *, comment: str, **options: Any) -> None:
    """Acknowledge alerts: they still fire, but their notifications are not repeated.

    A further occurrence or a higher severity is notified again, and so is the end.

    \b
    Examples:
      tidemark alerts ack 0123456789abcdef
      tidemark alerts ack 0123456789abcdef 0a1b2c3d4e5f6071 --comment 'broker 2 is being replaced'
    """  # noqa: D301 - see above
    with client_of(options, scope="ack") as api:
        for name in names:
            with listing.about(name):
                answer = api.change("POST", f"alerts/{name}/acknowledge", {"comment": comment})
            done = answer.document
            click.echo(f"{name} is acknowledged by {done['acknowledged']['by']}")


@command.command()
@MANY
@server_options_for("ack")
def unack(names: Sequence[str], **options: Any) -> None:
    """Withdraw acknowledgements: notifications are repeated again.

    \b
    Examples:
      tidemark alerts unack 0123456789abcdef
    """  # noqa: D301 - see above
    with client_of(options, scope="ack") as api:
        for name in names:
            with listing.about(name):
                api.change("DELETE", f"alerts/{name}/acknowledge")
            click.echo(f"{name} is no longer acknowledged")


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
                api.change("POST", f"alerts/{name}/close", {"why": why})
            click.echo(f"{name} will be closed by the next round")
