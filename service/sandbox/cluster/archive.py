"""A shared archive of loaded classes: halves the time until four Kafka processes serve.

Class data sharing (JDK 13+) maps classes that an earlier run had loaded. One broker is run once
to make the archive. It lies beside the jars and goes with them, because Java rejects an archive
whose jars have changed. Without an archive everything works, only slower.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rules.errors import SandboxError
from service.runtime.clock import wait_until
from service.sandbox.cluster import ports, processes
from service.sandbox.cluster.commands import archive_path, node_command
from service.sandbox.cluster.formatting import format_node
from service.sandbox.cluster.jars import sha256
from service.sandbox.cluster.layout import node_layout
from service.sandbox.cluster.locking import locked
from service.sandbox.cluster.processes import Liveness, liveness
from service.sandbox.cluster.readiness import listed_brokers
from service.sandbox.cluster.state import PORTS_NEEDED, Node, ProcessId, SandboxState, plan_nodes

SERVE_SECONDS = 60.0
DUMP_SECONDS = 60.0


def ensure_archive(state: SandboxState, *, progress: Callable[[str], None]) -> None:
    """Make the archive when it is absent; a failure is reported and costs only speed."""
    cache, path = Path(state.cache), archive_path(Path(state.cache) / "jars", Path(state.java))
    if is_sound(path):
        return
    with locked(cache):
        if is_sound(path):
            return
        path.unlink(missing_ok=True)
        progress("Preparing fast starts (once, about ten seconds)")
        for left_over in cache.glob("training-*"):
            shutil.rmtree(left_over, ignore_errors=True)  # of a run that was killed
        work = Path(tempfile.mkdtemp(prefix="training-", dir=cache))
        try:
            _train(work, replace(state, nodes=plan_nodes(ports.choose_free(PORTS_NEEDED))), path)
        except (SandboxError, OSError) as exc:
            progress(f"Starts stay slow: {exc}")
        finally:
            shutil.rmtree(work, ignore_errors=True)


def is_sound(path: Path) -> bool:
    """Return whether the archive is unchanged since it was written: Java would crash on a damaged one."""
    seal = _seal(path)
    return path.exists() and seal.exists() and seal.read_text(encoding="ascii") == sha256(path)


def _seal(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _train(work: Path, state: SandboxState, path: Path) -> None:
    controller, broker = state.nodes[0], state.brokers[0]
    fresh = work / "classes.jsa"
    with contextlib.ExitStack() as undo:
        for node in (controller, broker):
            format_node(work, state, node)
        _spawn(undo, work, state, controller)
        trained = _spawn(undo, work, state, broker, f"-XX:ArchiveClassesAtExit={fresh}")
        _await_service(broker, trained)
        processes.terminate(trained)
        wait_until(lambda: liveness(trained) is Liveness.DEAD, timeout_seconds=DUMP_SECONDS)
        if not fresh.exists():
            raise SandboxError("Java wrote no class archive")
        _seal(path).write_text(sha256(fresh), encoding="ascii")
        fresh.rename(path)


def _spawn(
    undo: contextlib.ExitStack, work: Path, state: SandboxState, node: Node, *options: str
) -> ProcessId:
    java, *rest = node_command(work, state, node)
    # Java rejects an archive that was made with a Java agent loaded.
    arguments = [argument for argument in rest if not argument.startswith("-javaagent:")]
    output = node_layout(work, node.id).output
    process = processes.spawn([java, *options, *arguments], output=output)
    undo.callback(processes.end, [process])
    return process


def _await_service(broker: Node, process: ProcessId) -> None:
    def serves_or_died() -> bool:
        serves = ports.accepts(broker.port) and broker.id in listed_brokers(broker.address)
        return serves or liveness(process) is Liveness.DEAD

    if not wait_until(serves_or_died, timeout_seconds=SERVE_SECONDS):
        raise SandboxError("the broker that was to make the class archive did not start")
