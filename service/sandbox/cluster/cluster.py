"""The sandbox: one dedicated controller and three brokers of a real Kafka on this machine.

Processes outlive the command that started them. Everything that changes the sandbox holds the
lock of its folder, reads the state file, acts, and writes the state file.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rules.errors import SandboxError
from service.runtime.clock import utc_now
from service.sandbox.cluster import jars, ports, processes, readiness, tls
from service.sandbox.cluster.admin import SandboxAdmin, observer_permissions
from service.sandbox.cluster.archive import ensure_archive
from service.sandbox.cluster.commands import marker, node_command
from service.sandbox.cluster.formatting import format_node, new_cluster_id
from service.sandbox.cluster.java import find_java
from service.sandbox.cluster.layout import default_cache, node_layout, remove_ours
from service.sandbox.cluster.locking import locked
from service.sandbox.cluster.processes import Liveness, liveness
from service.sandbox.cluster.state import (
    CONTROLLER_ID,
    PORTS_NEEDED,
    Node,
    ProcessId,
    SandboxOptions,
    SandboxState,
    plan_nodes,
    read_state,
    write_state,
)

__all__ = ["NodeStatus", "Sandbox", "SandboxOptions", "UpReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """What a node is doing now; the last two are None unless it lives."""

    node: Node
    liveness: Liveness
    resident_bytes: int | None
    uptime_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpReport:
    """Which nodes `up` started, and which it left paused, by node id."""

    started: tuple[int, ...]
    paused: tuple[int, ...]
    options: SandboxOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class DownReport:
    """What `down` did: processes ended, and foreign files that it left in the folder."""

    ended: int
    cleared: bool  # false: there was no folder
    spared: tuple[Path, ...]


def _silent(_line: str) -> None:
    """Print nothing: the default of a library call."""


class Sandbox:
    """A local cluster that lives in one folder.

    `options` count when the cluster is made; a running one keeps those it has. In `cache` each
    release of Kafka has a folder of its own.
    """

    def __init__(
        self,
        directory: Path,
        *,
        options: SandboxOptions | None = None,
        cache: Path | None = None,
        progress: Callable[[str], None] = _silent,
    ) -> None:
        self.directory = directory.absolute()
        self._options = options or SandboxOptions()
        release = f"kafka-{self._options.kafka_version}"
        self._cache = (cache or default_cache()).absolute() / release
        self._progress = progress

    @property
    def state(self) -> SandboxState:
        """The stored state; raises SandboxError when there is no sandbox."""
        state = read_state(self.directory)
        if state is None:
            command = f"tidemark sandbox up --dir {shlex.quote(str(self.directory))}"
            raise SandboxError(f"no sandbox in {self.directory}; start one with: {command}")
        return state

    @property
    def bootstrap_servers(self) -> str:
        """PLAINTEXT addresses of all brokers."""
        return self.state.bootstrap_servers

    @property
    def sasl_bootstrap_servers(self) -> str:
        """SASL_PLAINTEXT (SCRAM) addresses of all brokers."""
        return ",".join(f"{ports.HOST}:{broker.sasl_port}" for broker in self.state.brokers)

    @property
    def tls_bootstrap_servers(self) -> str:
        """TLS addresses of all brokers; clients trust `tls_ca_file` and need no password."""
        return ",".join(f"{ports.HOST}:{broker.tls_port}" for broker in self.state.brokers)

    @property
    def tls_ca_file(self) -> Path:
        """Certificate (PEM) that a client of the TLS listener has to trust."""
        return tls.ca_file(Path(self.state.cache))

    def broker_address(self, broker_id: int) -> str:
        """host:port of one broker's PLAINTEXT listener."""
        return self.state.node(broker_id).address

    def metrics_url(self, node_id: int) -> str:
        """Address of one node's Prometheus page."""
        return f"http://{ports.HOST}:{self.state.node(node_id).metrics_port}/metrics"

    def log_directory(self, node_id: int) -> Path:
        """Folder of one node's server.log, controller.log and state-change.log."""
        return node_layout(self.directory, self.state.node(node_id).id).logs

    def status(self) -> tuple[NodeStatus, ...]:
        """Observe every node; empty when there is no sandbox."""
        state = read_state(self.directory)
        return () if state is None else tuple(_observe(node) for node in state.nodes)

    def up(self) -> UpReport:
        """Make the cluster or start what is missing of it; return when it serves.

        A failed or interrupted start ends the processes that it began and leaves their logs.
        """
        with self._locked_and_made():
            state = read_state(self.directory)
            if state is None or not (state.was_ready or _live(state)):
                state = self._create()
            elif len(_live(state)) < len(state.nodes):
                self._fill_cache(state)
            paused = [n.id for n in state.nodes if liveness(n.process) is Liveness.PAUSED]
            missing = [n for n in state.nodes if not _is_live(n)]
            if missing and CONTROLLER_ID in paused:
                raise SandboxError("the controller is paused: tidemark sandbox resume 100")
            if missing:
                state = self._start(state, missing)
            if not state.was_ready:
                readiness.wait_ready(self.directory, state, _running(state))
                SandboxAdmin(state.bootstrap_servers).grant(observer_permissions())
                write_state(self.directory, replace(state, was_ready=True))
        return UpReport(
            started=tuple(n.id for n in missing), paused=tuple(paused), options=state.options
        )

    def down(self) -> DownReport:
        """End every process of this sandbox and remove every file that it made."""
        doomed = processes.find_marked(marker(self.directory))
        if not self.directory.is_dir():
            processes.end(doomed)
            return DownReport(ended=len(doomed), cleared=False, spared=())
        with self._locked():
            doomed = processes.find_marked(marker(self.directory))
            with contextlib.suppress(SandboxError):  # a damaged state file: the marks suffice
                state = read_state(self.directory)
                doomed += [] if state is None else [n.process for n in _live(state) if n.process]
            # Their data is about to go: an orderly shutdown would take seconds for nothing.
            unique = {process.pid: process for process in doomed}
            processes.end(unique.values())
            spared = remove_ours(self.directory)
            self._remove_if_empty()
        return DownReport(ended=len(unique), cleared=True, spared=tuple(spared))

    def kill(self, node_id: int) -> bool:
        """Kill a node with SIGKILL; false when it did not live."""
        with self._locked():
            node = self.state.node(node_id)
            if not _is_live(node) or node.process is None:
                return False
            processes.end([node.process])
            return True

    def pause(self, node_id: int) -> bool:
        """Freeze a node with SIGSTOP; false when it was frozen already."""
        return self._move(node_id, processes.pause, to=Liveness.PAUSED)

    def resume(self, node_id: int) -> bool:
        """Let a frozen node go on with SIGCONT; false when it was not frozen."""
        return self._move(node_id, processes.resume, to=Liveness.RUNNING)

    def _move(self, node_id: int, step: Callable[[ProcessId], None], *, to: Liveness) -> bool:
        with self._locked():
            node = self.state.node(node_id)
            if liveness(node.process) is to:
                return False
            if node.process is None or not _is_live(node):
                raise SandboxError(f"{node.label} is not running: tidemark sandbox start {node.id}")
            step(node.process)
            return True

    def start(self, node_id: int) -> bool:
        """Start a dead node with its old identity and data; false when it lives.

        Returns once it is registered and unfenced. After a kill the controller takes it back
        only when the old session has ended (4 s, 9 s with Kafka's own time-outs).
        """
        with self._locked():
            state = self.state
            node = state.node(node_id)
            if liveness(node.process) is Liveness.PAUSED:
                raise SandboxError(f"{node.label} is paused: tidemark sandbox resume {node_id}")
            if _is_live(node):
                return False
            controller = state.node(CONTROLLER_ID)
            if node is not controller and liveness(controller.process) is not Liveness.RUNNING:
                raise SandboxError("a broker cannot register: the controller is not running")
            self._fill_cache(state)
            self._start(state, [node])
            return True

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        if not self.directory.is_dir():
            command = f"tidemark sandbox up --dir {shlex.quote(str(self.directory))}"
            raise SandboxError(f"no sandbox in {self.directory}; start one with: {command}")
        with self._clear_disk_errors(), locked(self.directory):
            yield

    @contextlib.contextmanager
    def _locked_and_made(self) -> Iterator[None]:
        if "," in str(self.directory):
            raise SandboxError(f"Kafka cannot use a folder with a comma: {self.directory}")
        if set(":=") & set(
            str(self._cache)
        ):  # it is in a class path, and before an agent's options
            raise SandboxError(
                f"Java cannot use a cache with a colon or an equals sign: {self._cache}"
            )
        with self._clear_disk_errors():
            self.directory.mkdir(parents=True, exist_ok=True)
            with locked(self.directory), contextlib.ExitStack() as undo:
                undo.callback(self._remove_if_empty)  # when nothing came of it
                yield

    @contextlib.contextmanager
    def _clear_disk_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            name = exc.filename or self.directory
            raise SandboxError(f"cannot use {name}: {exc.strerror or exc}") from exc

    def _remove_if_empty(self) -> None:
        with contextlib.suppress(OSError):
            self.directory.rmdir()

    def _create(self) -> SandboxState:
        processes.end(processes.find_marked(marker(self.directory)))
        remove_ours(self.directory)
        with contextlib.ExitStack() as undo:
            undo.callback(remove_ours, self.directory)
            state = self._plan()
            self._fill_cache(state)
            for node in state.nodes:
                format_node(self.directory, state, node)
            write_state(self.directory, state)
            undo.pop_all()
        return state

    def _fill_cache(self, state: SandboxState) -> None:
        cache, java = Path(state.cache), Path(state.java)
        pinned = jars.read_lock(state.release.lock_file)
        jars.ensure_jars(cache, pinned, java=java, progress=self._progress)
        tls.ensure_certificate(cache, java=java)
        ensure_archive(state, progress=self._progress)

    def _plan(self) -> SandboxState:
        java = find_java()
        base = self._options.port_base
        numbers = (
            ports.choose_free(PORTS_NEEDED) if base is None else ports.fixed(base, PORTS_NEEDED)
        )
        ports.require_free(numbers)
        return SandboxState(
            cluster_id=new_cluster_id(),
            java=str(java),
            cache=str(self._cache),
            options=self._options,
            nodes=plan_nodes(numbers),
        )

    def _start(self, state: SandboxState, missing: list[Node]) -> SandboxState:
        ports.require_free(port for node in missing for port in node.ports)
        with contextlib.ExitStack() as undo:
            for node in missing:
                output = node_layout(self.directory, node.id).output
                process = processes.spawn(node_command(self.directory, state, node), output=output)
                undo.callback(processes.end, [process])
                state = state.with_process(node.id, process)
                write_state(self.directory, state)
            awaited = [state.node(node.id) for node in missing]
            readiness.wait_ready(self.directory, state, awaited)
            undo.pop_all()
        return state


def _observe(node: Node) -> NodeStatus:
    used = processes.usage(node.process)
    return NodeStatus(
        node=node,
        liveness=liveness(node.process),
        resident_bytes=None if used is None else used[0],
        uptime_seconds=None if used is None else utc_now().timestamp() - used[1],
    )


def _is_live(node: Node) -> bool:
    return liveness(node.process) in (Liveness.RUNNING, Liveness.PAUSED)


def _live(state: SandboxState) -> list[Node]:
    return [node for node in state.nodes if _is_live(node)]


def _running(state: SandboxState) -> list[Node]:
    return [node for node in state.nodes if liveness(node.process) is Liveness.RUNNING]
