"""The `tidemark` command: a thin tree whose branches are imported only when they are used.

Nothing here may import a Kafka client, Spark or SQLAlchemy: `tidemark --help` has to answer
at once, also on a machine where something is broken.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, ClassVar, Final

import click

from rules.errors import (
    AuthenticationError,
    BaselineRunError,
    ConflictError,
    NotInstalledError,
    NotThereError,
    RequestError,
    SandboxError,
    SettingsError,
    StoreError,
    TidemarkError,
    UnreachableError,
)
from rules.version import VERSION
from service.cli.server.server_options import context_option
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import no_color_option
from service.terminal.help_text import put_examples_first
from service.terminal.output import OutputClosedError, OutputError, guarded_streams
from service.terminal.words import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

EXIT_CODES = """\b
Exit codes:
    0  done; a round was complete, or the reader of a pipe had enough
    1  incomplete: the round has gaps (they are in its output), or the list is not current
    2  wrong usage            3  wrong settings
    4  cluster or --server unreachable
    5  authentication rejected
    6  nothing matches the filter in a complete round, or nothing has that name
    7  the sandbox cannot do this
    8  the output could not be written
    9  the database is unreachable, rejects us or has another schema, or its data directory is in use
   10  a part that the service needs failed (its log says why), or Spark failed
   11  a transaction hangs: no coordinator will ever end it
   12  committed records are lost, or may be
   13  the text to explain has nothing of Kafka, or (`sequence explain`) no line about sequences
   14  conflict: the alert has ended, somebody else changed it meanwhile, or it runs already
   15  not installed: the extra `nightly`, with Spark
   16  an alert fires (`status --exit-code`), or a setting is wrong (`posture`)
  130  interrupted
"""


class LazyGroup(click.Group):
    """A group that imports a subcommand's module when that subcommand is called."""

    commands_by_module: ClassVar[dict[str, tuple[str, str]]] = {
        "alerts": ("service.cli.alerts.command", "Show, acknowledge and close alerts."),
        "application-errors": (
            "service.cli.application_errors.command",
            "Show what applications logged about Kafka.",
        ),
        "at": ("service.cli.past.at", "Show offsets and lags as they were at a time."),
        "audit": ("service.cli.audit", "Show who changed what, and why."),
        "backtest": (
            "service.cli.backtest.command",
            "Replay history: what would have fired, how often.",
        ),
        "baselines": (
            "service.cli.baselines.command",
            "Show usual values; go back to an earlier run.",
        ),
        "collect": ("service.cli.collect.command", "Read a cluster's true offsets."),
        "config": ("service.cli.config", "Show the settings that are in effect."),
        "completion": ("service.cli.completion", "Complete commands in bash, zsh or fish."),
        "context": ("service.cli.context", "Name several Tidemarks, and choose one."),
        "dashboards": (
            "service.cli.dashboards.command",
            "Export dashboards and rules, or push dashboards.",
        ),
        "db": ("service.cli.database", "Upgrade or check the database; grant its views."),
        "deliveries": ("service.cli.deliveries", "Show sent notifications; send one again."),
        "doctor": ("service.cli.doctor.command", "Check permissions and all else that it needs."),
        "events": (
            "service.cli.events.command",
            "Show what changed in the cluster, and when.",
        ),
        "explain": ("service.cli.explain.command", "Explain an exception or log lines of Kafka."),
        "groups": ("service.cli.groups.command", "Show groups, their members and rebalances."),
        "history": ("service.cli.history.command", "Import history from files or from Prometheus."),
        "incident": (
            "service.cli.incident.command",
            "Write the report of an incident from facts.",
        ),
        "jobs": ("service.cli.jobs", "Show scheduled jobs; run one now."),
        "lag": ("service.cli.groups.lag", "Show how far groups are behind, and who owns what."),
        "log": ("service.cli.log.command", "Read the files of a log directory; find what is lost."),
        "loss": ("service.cli.loss.command", "Show lost records and what to do about them."),
        "nightly": ("service.cli.nightly", "Learn baselines from past days."),
        "posture": (
            "service.cli.posture.command",
            "Check the settings on which exactly-once depends.",
        ),
        "record-errors": (
            "service.cli.record_errors",
            "Show which clients had records fail, or sent them again.",
        ),
        "receivers": ("service.cli.receivers", "Show and test the receivers of alerts."),
        "rules": ("service.cli.rules", "Show rules, and what to do about a breach."),
        "runbook": ("service.cli.runbook.command", "Follow the runbook of an alert."),
        "sandbox": (
            "service.sandbox.commands.sandbox",
            "Run a real Kafka cluster on this machine.",
        ),
        "sequence": (
            "service.cli.sequence.command",
            "Find whether sequence gaps are reordering or loss.",
        ),
        "series": ("service.cli.past.series", "Show what was measured, from history."),
        "serve": ("service.cli.serve", "Watch a cluster continuously."),
        "silences": ("service.cli.silences", "Hold back alerts for a while."),
        "status": ("service.cli.status", "Show what is wrong, on one screen."),
        "token": ("service.cli.token", "Create, list and revoke tokens of the HTTP API."),
        "tx": ("service.cli.tx.command", "Show open transactions and the groups they block."),
        "watch": ("service.cli.watch.command", "Show what is wrong, live, and move in it by keys."),
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names without importing anything."""
        del ctx
        return sorted(self.commands_by_module)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module that holds the command of this name."""
        del ctx
        if cmd_name not in self.commands_by_module:
            return None
        module = importlib.import_module(self.commands_by_module[cmd_name][0])
        command: click.Command = module.command
        put_examples_first(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for an unknown name suggest similar ones."""
        name = args[0]
        if name in self.commands_by_module or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        import difflib  # noqa: PLC0415 - keeps `--help` fast

        nearest = difflib.get_close_matches(name, self.list_commands(ctx), cutoff=0.7)
        meant = f" Did you mean {' or '.join(nearest)}?" if nearest else ""
        raise click.UsageError(f"No such command {name!r}.{meant}", ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin so, without importing them; the options too."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - keeps `--help` fast

        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [
            CompletionItem(name, help=summary)
            for name, (_, summary) in sorted(self.commands_by_module.items())
            if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with the summaries kept here, so that help imports nothing."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(n, s) for n, (_, s) in sorted(self.commands_by_module.items())])


@click.group(
    cls=LazyGroup,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(VERSION, prog_name="tidemark")
@context_option
@no_color_option
def tidemark() -> None:
    """Find out whether a Kafka pipeline lost, reordered, duplicated or only delayed records.

    \b
    Examples:
      tidemark status
      tidemark sandbox up
      tidemark collect --once --bootstrap-servers 127.0.0.1:9092 -o table
      tidemark serve --bootstrap-servers 127.0.0.1:9092
      tidemark config check --config tidemark.toml
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


# The first family that matches counts: subclasses come before their base class.
CODES: Final = (
    (SettingsError, ExitCode.SETTINGS),
    (AuthenticationError, ExitCode.AUTHENTICATION),
    (SandboxError, ExitCode.SANDBOX),
    (UnreachableError, ExitCode.UNREACHABLE),
    (StoreError, ExitCode.STORE),
    (BaselineRunError, ExitCode.FAILED),
    (NotInstalledError, ExitCode.NOT_INSTALLED),
    (NotThereError, ExitCode.NOTHING_MATCHED),
    (ConflictError, ExitCode.CONFLICT),
    (RequestError, ExitCode.USAGE),
)


def exit_code_of(error: TidemarkError) -> ExitCode:
    """Map an error family to the exit code that a script sees."""
    codes = (code for family, code in CODES if isinstance(error, family))
    return next(codes, ExitCode.INCOMPLETE)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; our errors become one line on stderr."""
    try:
        with guarded_streams():
            return _run(arguments)
    except OutputClosedError:
        return ExitCode.OK  # the reader of our output closed the pipe: no error
    except OutputError as error:
        click.echo(f"tidemark: the output cannot be written: {error}", err=True)
        return ExitCode.OUTPUT


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = tidemark.main(
            args=arguments, standalone_mode=False, complete_var="_TIDEMARK_COMPLETE"
        )
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    except TidemarkError as error:
        click.echo(f"tidemark: {error}", err=True)
        return exit_code_of(error)
    except UnicodeEncodeError as error:
        # Bytes of an argument that are no UTF-8 are lone surrogates: a path may have them, nothing else can.
        click.echo(f"tidemark: '{printable(error.object)}' is not UTF-8", err=True)
        return ExitCode.USAGE
    return int(code or 0)
