"""The demo that was left running: where it lives, how it is left, how it is ended."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from rules.errors import SandboxError
from service.runtime.children import PYTHON, module_command
from service.sandbox.cluster import processes
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.processes import Liveness
from service.sandbox.cluster.state import ProcessId
from service.sandbox.demo.stage import ORDERS, Stage, end_child, end_in_order

STATE_FILE: Final = "demo.json"
QUERIES: Final = (
    "alerts ls",
    "deliveries ls",
    "loss show invoices-0",
    "sequence show refunds-0",
    "sequence show parcels-0",
    "baselines ls",
    "baselines show --topic orders-1 --partition 0 --metric produce_rate",
)


def demo_folder() -> Path:
    """Return the folder of a demo that --keep left running; it is not the sandbox's folder.

    The home of root is closed to the user that its PostgreSQL runs as.
    """
    own = Path("/var/lib") if os.geteuid() == 0 else Path.home() / ".local/state"
    return Path(os.environ.get("XDG_STATE_HOME") or own) / "tidemark/demo"


def require_none_running() -> None:
    """Raise when a demo is running already.

    Raises:
        SandboxError: a demo runs.
    """
    left_running = _read_processes()
    if any(processes.liveness(process) is Liveness.RUNNING for process in left_running):
        raise SandboxError(
            f"a demo runs in {demo_folder()}; end it first: tidemark sandbox demo --end"
        )


def leave_running(stage: Stage) -> None:
    """Hand the load over to a process that outlives this one, and print where everything is."""
    stage.loads.close()
    end_child(stage.baseline_runs)
    for group in stage.temporary_groups:  # without a reader it would be found stalled
        stage.admin.delete_group(group)
    options = ("--dir", str(stage.sandbox.directory), "--rate", str(ORDERS.rate))
    load = module_command("service", "sandbox", "workload", "--abort-every", "5", *options)
    workload = processes.spawn(load, output=stage.folder / "workload.log")
    left = [
        process
        for process in (stage.tidemark, workload, stage.pager.process)
        if process is not None
    ]
    text = json.dumps([asdict(process) for process in left])
    (stage.folder / STATE_FILE).write_text(text, encoding="utf-8")
    stage.is_left_running = True
    click.echo("\nLeft running:")
    for what, where in (
        ("brokers", stage.servers),
        ("Tidemark", stage.address),
        ("metrics", f"{stage.address}/metrics"),
        ("status", f"{stage.address}/api/v1/status"),
        ("findings", f"{stage.address}/api/v1/findings"),
        ("alerts", f"{stage.address}/api/v1/alerts"),
        ("pager got", str(stage.pager.record)),
        ("at risk", f"{stage.address}/api/v1/partitions?at_risk=true"),
        ("files", str(stage.folder)),
    ):
        click.echo(f"  {what:9} {where}")
    where, command = f"--dir {shlex.quote(str(stage.sandbox.directory))}", _command()
    click.echo("Ask it:")
    for query in QUERIES:
        click.echo(f"  {command} {query} --server {stage.address}")
    click.echo("Break it, and watch the addresses above:")
    for broken, seen in (
        ("kill 3", "partitions at risk; no finding: two replicas do"),
        ("kill 2", "partition_under_min_isr is found within seconds"),
        ("up", "mends both; the findings end"),
    ):
        click.echo(f"  {command} sandbox {broken} {where}   {seen}")
    click.echo(f"End it:\n  {command} sandbox demo --end")


def _command() -> str:
    """Return how to type the command where it is not on the path, as after `make`."""
    here = shlex.quote(str(Path(PYTHON).with_name("tidemark")))
    return "tidemark" if shutil.which("tidemark") else here


def end_running_demo() -> bool:
    """End a demo that was left running and remove its files; False if there is none."""
    folder = demo_folder()
    if not (folder / STATE_FILE).exists():
        click.echo(f"No demo was left running in {folder}.", err=True)
        return False
    click.echo("Ending Tidemark, the load and the cluster ...")
    for process in _read_processes():
        end_in_order(process)
    report = Sandbox(folder / "kafka").down()
    shutil.rmtree(folder, ignore_errors=True)
    click.echo(f"Ended; {report.ended} nodes ran to the last. {folder} is removed.")
    return True


def _read_processes() -> list[ProcessId]:
    try:
        text = (demo_folder() / STATE_FILE).read_text(encoding="utf-8")
        return [ProcessId(**load) for load in json.loads(text)]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError) as exc:
        raise SandboxError(f"{demo_folder() / STATE_FILE} cannot be read: {exc}") from exc
