"""`tidemark runbook`: what to do about an alert, step by step. Only click is imported at the top."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from service.cli.options.kafka_options import config_option
from service.cli.runbook.choosing import Fingerprint, fetch_alert
from service.cli.server.server_options import (
    client_of,
    options_to,
    options_to_also,
    server_options,
    server_options_for,
)
from service.terminal.answer import print_answer, print_parts
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import output_option
from service.terminal.parts import Line, Row, Table, long, short

if TYPE_CHECKING:
    from service.cli.runbook.surroundings import Surroundings
    from service.cli.runbook.transcript import Transcript
    from service.cli.runbook.walking import Walk
    from service.runbooks.form import Runbook
    from service.settings import Settings

STYLES: Final = {"critical": "bold red", "warning": "yellow"}
COLUMNS: Final = (
    short("rule"),
    short("severity"),
    long("owner"),
    long("fault", lambda row: row.get("fault") or "none"),
    short("verified", "last_verified"),
    long("from", lambda row: row["source"] if row["is_own"] else "Tidemark"),
)
DIR: Final = click.option(
    "--dir", "folder", type=click.Path(path_type=Path), metavar="FOLDER",
    help="Folder of your own runbooks  [default: the setting runbooks.dir]",
)  # fmt: skip
BROKERS: Final = click.option(
    "--bootstrap-servers", metavar="HOST:PORT,...",
    help="Brokers, for commands that query the cluster  [default: the setting "
    "kafka.bootstrap_servers]",
)  # fmt: skip
COMMAND_CONFIG: Final = click.option(
    "--command-config", type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE", help="Properties for Kafka's own tools, where brokers want a login.",
)  # fmt: skip
KAFKA_TOOLS: Final = click.option(
    "--kafka-tools", metavar="FOLDER",
    help="Folder of Kafka's scripts, or `sandbox` for those of the sandbox  [default: PATH]",
)  # fmt: skip


@click.group("runbook")
def command() -> None:
    """Show what to do about an alert, and walk through it.

    docs/runbooks.md says how a runbook is written, and how your own come before those of Tidemark.

    \b
    Examples:
      tidemark runbook ls
      tidemark runbook show transaction_hanging
      tidemark runbook run 0123456789abcdef
      tidemark runbook check /etc/tidemark/runbooks
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command("ls")
@DIR
@config_option
@output_option
def ls(folder: Path | None, path: Path | None, **options: Any) -> None:
    """List the runbooks, those of the most severe rules first.

    "fault" is what `tidemark sandbox fault` makes, to try the runbook with; "verified" is the release of
    Kafka on which its commands were last run.

    \b
    Examples:
      tidemark runbook ls
      tidemark runbook ls -o json | jq -r '.runbooks[] | select(.is_own) | .source'
    """  # noqa: D301 - see above
    from service.cli.runbook import library  # noqa: PLC0415 - keeps `--help` fast
    from service.cli.runbook.documents import row_of  # noqa: PLC0415 - same

    own = _own_folder(_settings(path, folder))
    rows = [row_of(runbook, is_own=is_own) for runbook, is_own in library.read_all(own, _warn)]
    table = Table(
        columns=COLUMNS, rows=rows, style=lambda row: STYLES.get(str(row.get("severity")))
    )
    print_answer({"runbooks": rows}, [table], options)


@command.command("show")
@click.argument("rule")
@click.option("--alert", "name", type=Fingerprint(), help="Fill it in for this alert.")
@BROKERS
@COMMAND_CONFIG
@DIR
@config_option
@server_options
def show(rule: str, name: str | None, **options: Any) -> None:
    """Show the runbook of a rule; nothing is run. Exits with 6 if there is no such rule.

    \b
    Examples:
      tidemark runbook show committed_records_lost
      tidemark runbook show transaction_hanging --alert 0123456789abcdef
      tidemark runbook show transaction_hanging -o json | jq '.sections[].name'
    """  # noqa: D301 - see above
    from service.cli.runbook import library  # noqa: PLC0415 - keeps `--help` fast
    from service.cli.runbook.documents import document_of  # noqa: PLC0415 - same

    settings = _settings(options["path"], options["folder"], options["bootstrap_servers"])
    runbook = library.find(rule, _own_folder(settings), _warn)
    alert = None if name is None else _alert_of_rule(options, name, runbook.rule)
    if options["output"] == "json":
        print_answer(document_of(runbook, alert), (), options)
        return
    surroundings = _surroundings(options, settings)
    _head(runbook, alert)
    _walk(runbook, alert, surroundings, is_shown=True).walk()


@command.command("run")
@click.argument("name", metavar="ALERT", type=Fingerprint())
@click.option("--dry-run", is_flag=True, help="Print what would be run; run nothing.")
@click.option("--no-input", is_flag=True, help="Never ask: mitigations are printed, and not run.")
@click.option(
    "--transcript", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Append what is done to this file  [default: a new one in ~/.local/state/tidemark/runbooks]",
)  # fmt: skip
@BROKERS
@COMMAND_CONFIG
@KAFKA_TOOLS
@DIR
@config_option
@server_options_for("read")
def run(
    name: str, *, dry_run: bool, no_input: bool, transcript: Path | None, **options: Any
) -> int:
    """Walk through the runbook of an alert, by its fingerprint or the first digits of it.

    Commands that only read are run, and their results shown beside what to expect. A command that
    changes something is run only after you have said yes to it; without a terminal, or with
    --no-input, it is printed and never run. Exits with 1 if a command that reads could not be run.

    \b
    Examples:
      tidemark runbook run 0123456789abcdef
      tidemark runbook run 0123 --bootstrap-servers broker-1:9092 --transcript incident.txt
      tidemark runbook run 0123456789abcdef --dry-run
      tidemark runbook run 0123456789abcdef --kafka-tools /opt/kafka/bin
    """  # noqa: D301 - see above
    from service.cli.runbook import library  # noqa: PLC0415 - keeps `--help` fast
    from service.terminal.stopping import ended_in_order  # noqa: PLC0415 - same

    settings = _settings(options["path"], options["folder"], options["bootstrap_servers"])
    with client_of(options) as api:
        alert = fetch_alert(api, name)
    runbook = library.of_rule(str(alert.get("rule")), _own_folder(settings), _warn)
    surroundings = _surroundings(options, settings)
    if dry_run:
        _head(runbook, alert)
        walk = _walk(runbook, alert, surroundings)
        walk.why_unattended = "it changes something: a person has to say yes"
        walk.walk()
        return ExitCode.OK
    with ended_in_order(), _open_transcript(transcript, alert) as opened:
        _head(runbook, alert)
        walk = _walk(runbook, alert, surroundings)
        _attend(walk, alert, opened, is_silent=no_input)
        return _follow(walk, alert, opened, options["server"])


@command.command("check")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
def check(folder: Path) -> int:
    """Check the runbooks of a folder: front matter, sections, blocks and placeholders.

    Commands that are not known to only read are named: in a diagnosis they are shown, and never
    run. Exits with 3 if a runbook cannot be used.

    \b
    Examples:
      tidemark runbook check /etc/tidemark/runbooks
    """  # noqa: D301 - see above
    from service.cli.runbook import library  # noqa: PLC0415 - keeps `--help` fast
    from service.cli.runbook.checking import check_file  # noqa: PLC0415 - same

    rules, files = library.rule_ids(), library.files_of(folder)
    checked = [check_file(path, rules) for path in files]
    errors = [error for each in checked for error in each.errors]
    for line in (remark for each in checked for remark in each.remarks):
        click.echo(f"warning: {line}", err=True)
    for error in errors:
        click.echo(f"tidemark: {error}", err=True)
    click.echo(f"{len(files)} runbooks, {len(errors)} errors")
    return ExitCode.SETTINGS if errors else ExitCode.OK


def _settings(
    path: Path | None, folder: Path | None, bootstrap_servers: str | None = None
) -> Settings:
    from service.settings import read_settings  # noqa: PLC0415 - keeps `--help` fast

    flags: Mapping[str, Mapping[str, object]] = {
        "kafka": {"bootstrap_servers": bootstrap_servers},
        "runbooks": {"dir": None if folder is None else str(folder)},
    }
    return read_settings(os.environ, path=path, flags=flags)


def _own_folder(settings: Settings) -> Path | None:
    folder = settings.runbooks.dir
    return None if folder is None else Path(folder).expanduser()


def _surroundings(options: Mapping[str, Any], settings: Settings) -> Surroundings:
    from service.cli.runbook.surroundings import (  # noqa: PLC0415 - keeps `--help` fast
        SANDBOX,
        Surroundings,
    )

    def absolute(name: str) -> Path | None:
        return None if options[name] is None else Path(options[name]).absolute()

    tools, token_file = options.get("kafka_tools"), absolute("token_file")
    token = () if token_file is None else ("--token-file", str(token_file))
    return Surroundings(
        of_server=(*shlex.split(options_to(options["server"])), *token),
        of_server_also=(*shlex.split(options_to_also(options["server"])), *token),
        bootstrap_servers=settings.kafka.bootstrap_servers,
        config=absolute("path"),
        command_config=absolute("command_config"),
        kafka_tools=tools if tools in (None, SANDBOX) else str(Path(tools).absolute()),
    )


def _alert_of_rule(options: Mapping[str, Any], name: str, rule: str) -> Row:
    with client_of(options) as api:
        alert = fetch_alert(api, name)
    if alert.get("rule") != rule:
        raise click.UsageError(f"alert {alert['fingerprint']} is of rule {alert.get('rule')}")
    return alert


def _walk(
    runbook: Runbook, alert: Row | None, surroundings: Surroundings, *, is_shown: bool = False
) -> Walk:
    """Return a walk in which nothing is run, and nobody answers."""
    from service.cli.runbook.walking import Walk  # noqa: PLC0415 - same
    from service.runbooks.filling import values_of  # noqa: PLC0415 - keeps `--help` fast

    return Walk(
        runbook=runbook,
        values={} if alert is None else values_of(alert),
        surroundings=surroundings,
        say=_sayer(),
        run=None,
        is_filled=alert is not None,
        is_shown=is_shown,
    )


def _sayer() -> Callable[[str, str], None]:
    return lambda line, style: print_parts([Line(line, style)])


def _attend(walk: Walk, alert: Row, transcript: Transcript, *, is_silent: bool) -> None:
    """Let a walk run what reads, and let the person at the terminal decide on what changes."""
    from service.cli.runbook import running  # noqa: PLC0415 - keeps `--help` fast

    walk.run = running.run
    walk.transcript = transcript
    if alert.get("state") == "resolved":
        walk.why_unattended = "the alert has ended"
    elif is_silent:
        walk.why_unattended = "--no-input"
    elif all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        walk.ask = _ask


def _ask(question: str) -> bool:
    _forget_typed_ahead()
    try:
        return click.confirm(question, default=False)
    except click.Abort:  # Ctrl-C at the question
        raise KeyboardInterrupt from None


def _forget_typed_ahead() -> None:
    """Drop what was typed before the question could be read: it answers something else."""
    with contextlib.suppress(ImportError, OSError):
        import termios  # noqa: PLC0415 - not on every system

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _open_transcript(path: Path | None, alert: Row) -> Transcript:
    from service.cli.runbook import transcript  # noqa: PLC0415 - keeps `--help` fast
    from service.runtime.clock import utc_now  # noqa: PLC0415 - same

    if path is None:
        state = transcript.state_folder_of(dict(os.environ), Path.home())
        rule, fingerprint = str(alert.get("rule")), str(alert.get("fingerprint"))
        path = transcript.default_path(state, rule, fingerprint, utc_now())
    return transcript.Transcript(path, utc_now)


def _follow(walk: Walk, alert: Row, transcript: Transcript, server: str) -> int:
    facts = {**walk.values, "server": server, "runbook": walk.runbook.source}
    transcript.note(
        f"runbook {alert.get('rule')}, alert {alert.get('fingerprint')}, {alert.get('state')}",
        (f"{name}: {value}" for name, value in facts.items()),
    )
    try:
        walk.walk()
    finally:
        click.echo(f"\ntranscript: {transcript.path}")
    if not walk.left_out:
        return ExitCode.OK
    click.echo(f"tidemark: {len(walk.left_out)} commands could not be run to their end", err=True)
    return ExitCode.INCOMPLETE


def _head(runbook: Runbook, alert: Row | None) -> None:
    from service.cli.server.listing import labels_text  # noqa: PLC0415 - keeps `--help` fast

    say, facts = _sayer(), runbook.facts
    about = "" if alert is None else f"  {labels_text(alert.get('labels'), without=('alertname',))}"
    severity = str(facts.get("severity") if alert is None else alert.get("severity"))
    state = "" if alert is None else f"{str(alert.get('state')).upper()} "
    say(f"{state}{severity} {runbook.rule}{about}", STYLES.get(severity, "bold"))
    if alert is not None:
        say(f"  {alert.get('summary')} Reason: {alert.get('reason')}.", "")
    if facts.get("owner"):
        say(f"  Owner: {facts['owner']}", "")


def _warn(text: str) -> None:
    click.echo(f"warning: {text}", err=True)
