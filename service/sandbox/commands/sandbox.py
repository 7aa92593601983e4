"""`tidemark sandbox`: a real Kafka cluster on this machine, to try faults on.

Only click is imported here at the top: the help has to answer at once.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from service.sandbox.commands import fault, receive, simulate, tool, workload
from service.sandbox.commands.options import (
    open_sandbox,
    print_line,
    with_directory,
    with_output,
)
from service.sandbox.demo.command import command as demo
from service.terminal.answer import print_json
from service.terminal.exit_codes import ExitCode

if TYPE_CHECKING:
    from service.sandbox.cluster.admin import SandboxAdmin
    from service.sandbox.cluster.cluster import NodeStatus, Sandbox, SandboxOptions, UpReport

MIB = 2**20


@click.group("sandbox")
def command() -> None:
    """Run a real Kafka cluster on this machine: one controller (100), brokers 1, 2 and 3.

    It needs Java 17 or newer. The first `up` downloads Kafka's jars (47 MB) once.

    \b
    Examples:
      tidemark sandbox up
      tidemark sandbox status
      tidemark sandbox pause 2          a broker that hangs (SIGSTOP)
      tidemark sandbox kill 1           a broker that dies (SIGKILL)
      tidemark sandbox start 1          ... and comes back with its old data
      tidemark sandbox config topic orders min.insync.replicas=1
      tidemark sandbox fault --list     faults of transactions, losses and sequences, each with its truth
      tidemark sandbox tool --list      Kafka's own tools
      tidemark sandbox receive          a receiver of notifications that prints what arrives
      tidemark sandbox history          weeks of simulated history, to try baselines on
      tidemark sandbox down             end it and remove every file of it
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


command.add_command(demo)
for module in (fault, receive, simulate, tool, workload):
    command.add_command(module.command)


@command.command()
@with_directory
@with_output
@click.option("--heap", default="256m", show_default=True, help="Java heap of each process.")
@click.option("--realistic", is_flag=True, help="Kafka's own time-outs instead of fast ones.")
@click.option(
    "--kafka-version",
    default="4.1.1",
    show_default=True,
    help="Release of Kafka; an unknown one names those that there are.",
)
@click.option(
    "--port-base",
    type=click.IntRange(1, 65_535),
    help="First of fourteen ports in a row: three each for PLAINTEXT, SASL, TLS and metrics of the "
    "brokers, then the controller and its metrics. Default: free ports.",
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of Kafka's jars, with one below it for each release  [env: "
    "TIDEMARK_SANDBOX__CACHE; default: ~/.cache/tidemark]",
)
def up(*, directory: Path | None, output: str, cache: Path | None, **choices: Any) -> None:
    """Start the cluster, or what is missing of it, and wait until it serves.

    Does nothing when it runs already; its options then stay as they are until `down`. A paused
    node stays paused.

    \b
    Examples:
      tidemark sandbox up
      tidemark sandbox up --port-base 9092 -o json
      tidemark sandbox up --kafka-version 3.9.2
    """  # noqa: D301 - see above
    from service.sandbox.cluster.cluster import SandboxOptions  # noqa: PLC0415 - help stays fast

    options = SandboxOptions(**choices)
    sandbox = open_sandbox(directory, options=options, cache=cache, progress=print_line)
    try:
        report = sandbox.up()
    except KeyboardInterrupt:
        print_line(
            f"ended what had been started; logs, if any: {sandbox.directory}/node-*/logs; "
            "`tidemark sandbox down` removes them"
        )
        raise
    if output == "json":
        print_json(_describe(sandbox), indent=2)
    else:
        _print_up(sandbox, report, changed=report.options != options)


@command.command()
@with_directory
@with_output
def status(*, directory: Path | None, output: str) -> int:
    """Show every node: state, pid, ports, memory, uptime.

    \b
    Examples:
      tidemark sandbox status
      tidemark sandbox status -o json | jq '.nodes[].pid'

    \b
    Exit code: 0 when all nodes run, 1 otherwise (also when there is no sandbox).
    States: running; paused (SIGSTOP); dead (it ran and ended); stopped (never started).
    """  # noqa: D301 - see above
    sandbox = open_sandbox(directory)
    nodes = sandbox.status()
    if output == "json":
        print_json(_describe(sandbox) if nodes else {"nodes": []}, indent=2)
    elif nodes:
        _print_nodes(nodes)
        click.echo(f"\nbootstrap servers  {sandbox.bootstrap_servers}")
        click.echo(f"SASL (SCRAM)       {sandbox.sasl_bootstrap_servers}")
        click.echo(f"TLS                {sandbox.tls_bootstrap_servers}")
    else:
        click.echo(f"no sandbox in {sandbox.directory}; start one with: tidemark sandbox up")
    all_run = bool(nodes) and all(status.liveness == "running" for status in nodes)
    return ExitCode.OK if all_run else ExitCode.INCOMPLETE


@command.command()
@with_directory
def down(*, directory: Path | None) -> None:
    """End every process and remove every file that the sandbox made.

    \b
    Examples:
      tidemark sandbox down

    Files that somebody else laid into its folder stay, and are named.
    """  # noqa: D301 - see above
    sandbox = open_sandbox(directory)
    report = sandbox.down()
    if not (report.ended or report.cleared):
        click.echo(f"no sandbox in {sandbox.directory}: nothing to do")
        return
    click.echo(f"sandbox down: {report.ended} processes ended, {sandbox.directory} cleared")
    for path in report.spared:
        click.echo(f"not ours, left in place: {path}")


def _node_command(name: str, done: str, undone: str, text: str) -> None:
    example = f"\b\nExamples:\n  tidemark sandbox {name} 2"

    @command.command(name, help=f"{text}\n\n{example}")
    @click.argument("node", type=int)
    @with_directory
    def act(*, node: int, directory: Path | None) -> None:
        did = getattr(open_sandbox(directory), name)(node)
        click.echo(f"node {node} {done if did else undone}")


_node_command(
    "pause", "is paused (SIGSTOP)", "was paused already", "Freeze a node (SIGSTOP): it hangs."
)
_node_command("resume", "goes on (SIGCONT)", "was not paused", "Let a paused node go on (SIGCONT).")
_node_command("kill", "is dead (SIGKILL)", "was dead already", "Kill a node (SIGKILL).")
_node_command(
    "start",
    "is registered and serves",
    "was running already",
    "Start a dead node again, with its old identity and data; waits until it serves.",
)


@command.group()
def config() -> None:
    """Change settings at run time: KEY=VALUE sets, KEY= returns to the default.

    \b
    Examples:
      tidemark sandbox config topic orders min.insync.replicas=1 retention.ms=
      tidemark sandbox config broker 2 leader.replication.throttled.rate=20
    """  # noqa: D301 - see above


@config.command("topic")
@click.argument("name")
@click.argument("settings", nargs=-1, required=True, metavar="KEY=VALUE...")
@with_directory
def config_topic(*, name: str, settings: tuple[str, ...], directory: Path | None) -> None:
    """Change settings of a topic.

    \b
    Examples:
      tidemark sandbox config topic orders min.insync.replicas=1 retention.ms=
    """  # noqa: D301 - see above
    _admin(directory).set_topic_config(name, _parse_settings(settings))
    click.echo(f"topic {name}: {', '.join(settings)}")


@config.command("broker")
@click.argument("broker", type=int)
@click.argument("settings", nargs=-1, required=True, metavar="KEY=VALUE...")
@with_directory
def config_broker(*, broker: int, settings: tuple[str, ...], directory: Path | None) -> None:
    """Change dynamic settings of one broker.

    \b
    Examples:
      tidemark sandbox config broker 2 leader.replication.throttled.rate=20
    """  # noqa: D301 - see above
    _admin(directory).set_broker_config(broker, _parse_settings(settings))
    click.echo(f"broker {broker}: {', '.join(settings)}")


def _admin(directory: Path | None) -> SandboxAdmin:
    from service.sandbox.cluster.admin import SandboxAdmin  # noqa: PLC0415 - help stays fast

    return SandboxAdmin(open_sandbox(directory).bootstrap_servers)


def _parse_settings(settings: tuple[str, ...]) -> dict[str, str | None]:
    pairs = [setting.partition("=") for setting in settings]
    for key, sign, _ in pairs:
        if not (key and sign):
            raise click.UsageError(f"{key or '='!r} is not KEY=VALUE (KEY= returns to the default)")
    return {key: value or None for key, _, value in pairs}


def _describe(sandbox: Sandbox) -> dict[str, Any]:
    from service.sandbox.cluster.users import ADMIN, OBSERVER  # noqa: PLC0415 - help stays fast

    return {
        "directory": str(sandbox.directory),
        "cluster_id": sandbox.state.cluster_id,
        "kafka_version": sandbox.state.options.kafka_version,
        "bootstrap_servers": sandbox.bootstrap_servers,
        "sasl_bootstrap_servers": sandbox.sasl_bootstrap_servers,
        "tls_bootstrap_servers": sandbox.tls_bootstrap_servers,
        "tls_ca_file": str(sandbox.tls_ca_file),
        "users": {user.name: user.password for user in (ADMIN, OBSERVER)},
        "nodes": [_node_fields(sandbox, status) for status in sandbox.status()],
    }


def _node_fields(sandbox: Sandbox, status: NodeStatus) -> dict[str, Any]:
    node = status.node
    return {
        "id": node.id,
        "role": node.role,
        "state": status.liveness,
        "pid": node.process.pid if node.process and status.uptime_seconds is not None else None,
        "port": node.port,
        "sasl_port": node.sasl_port,
        "tls_port": node.tls_port,
        "metrics_port": node.metrics_port,
        "resident_bytes": status.resident_bytes,
        "uptime_seconds": status.uptime_seconds,
        "log_directory": str(sandbox.log_directory(node.id)),
    }


def _as_flags(options: SandboxOptions) -> str:
    port_base = f" --port-base {options.port_base}" if options.port_base else ""
    realistic = " --realistic" if options.realistic else ""
    return f"--heap {options.heap} --kafka-version {options.kafka_version}{realistic}{port_base}"


def _print_up(sandbox: Sandbox, report: UpReport, *, changed: bool) -> None:
    from service.sandbox.cluster.users import ADMIN, OBSERVER  # noqa: PLC0415 - help stays fast

    release = f"Kafka {report.options.kafka_version}"
    click.echo(f"{release} is running." if report.started else f"{release} is running already.")
    if changed:
        click.echo(f"Its options stay until `down`: {_as_flags(report.options)}")
    for node in report.paused:
        click.echo(f"Node {node} is paused and stays so: tidemark sandbox resume {node}")
    users = ", ".join(f"{user.name} / {user.password}" for user in (ADMIN, OBSERVER))
    if not sandbox.state.release.has_scram_users:
        users = "none: Kafka keeps them since 3.5"
    where = (
        ""
        if sandbox.directory == open_sandbox(None).directory
        else f" --dir {shlex.quote(str(sandbox.directory))}"
    )
    click.echo(f"""
  bootstrap servers  {sandbox.bootstrap_servers}  (no password, may do everything)
  SASL_PLAINTEXT     {sandbox.sasl_bootstrap_servers}  (SCRAM-SHA-512 and -256)
    users            {users}
  TLS                {sandbox.tls_bootstrap_servers}  (no password)
    trust            {sandbox.tls_ca_file}
  metrics            {sandbox.metrics_url(1)}
  logs               {sandbox.directory}/node-*/logs

Try:
  tidemark collect --once --bootstrap-servers {sandbox.bootstrap_servers} -o table
  tidemark sandbox status{where}
  tidemark sandbox pause 2{where}
  tidemark sandbox down{where}""")


def _print_nodes(nodes: tuple[NodeStatus, ...]) -> None:
    row = "{:>4}  {:<10}  {:<7}  {:>7}  {:>5}  {:>5}  {:>5}  {:>7}  {:>9}  {:>8}"
    click.echo(
        row.format(
            "node", "role", "state", "pid", "port", "sasl", "tls", "metrics", "rss", "uptime"
        )
    )
    for status in nodes:
        node, lives = status.node, status.uptime_seconds is not None
        click.echo(
            row.format(
                node.id,
                node.role,
                status.liveness,
                node.process.pid if node.process and lives else "-",
                node.port,
                node.sasl_port or "-",
                node.tls_port or "-",
                node.metrics_port,
                f"{(status.resident_bytes or 0) / MIB:.0f} MiB" if lives else "-",
                f"{status.uptime_seconds:.0f} s" if status.uptime_seconds is not None else "-",
            )
        )
