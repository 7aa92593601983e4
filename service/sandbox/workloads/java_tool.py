"""Kafka's own verifiable clients (kafka-tools) as workloads: Java without a compiler.

They print one JSON object per line: what was sent, read, committed. Each runs as a child that
carries the sandbox's mark, so that `tidemark sandbox down` ends it even if this process died.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, ClassVar

from collectors.security import Security
from rules.errors import SandboxError
from service.runtime.clock import monotonic
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.commands import marker, scratch_folder, tool_command
from service.sandbox.cluster.layout import node_layout
from service.sandbox.cluster.properties import render
from service.sandbox.cluster.state import CONTROLLER_ID
from service.sandbox.workloads.counts import Counts
from service.sandbox.workloads.producer import KEYS
from service.sandbox.workloads.workload import Workload

HEAP = "-Xmx96m"
READ_BYTES = 65_536
WATCH_SECONDS = 0.1
END_SECONDS = 5.0  # for its orderly end; a client that waits for brokers would take for ever
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"
EXPECTED_ENDS = frozenset({0, 128 + signal.SIGTERM, -signal.SIGTERM, -signal.SIGKILL})


def parse_event(line: str) -> Counts | None:
    """Return what one line of a verifiable client counts; None when it is not one of its lines."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return _counts_of(event) if isinstance(event, dict) else None


def _counts_of(event: Mapping[str, Any]) -> Counts:
    match event.get("name"):
        case "producer_send_success":
            return Counts(sent=1, acknowledged=1)
        case "producer_send_error":
            return Counts(sent=1, failed=1, last_error=str(event.get("message")))
        case "records_consumed":
            return Counts(consumed=int(event["count"]))
        case "offsets_committed" | "offsets_acknowledged" if not event.get("success"):
            return Counts(last_error=str(event.get("error")))
        case _:
            return Counts()


def is_cause_line(line: str) -> bool:
    """Return whether a line of Java's own output names a cause, and is no frame of a stack trace."""
    text = line.strip()
    return bool(text) and not text.startswith(("at ", "... "))


def java_security(security: Security) -> dict[str, str]:
    """Return the same security in the words of the Java clients."""
    if security.uses_tls:
        raise SandboxError("Java workloads use the PLAINTEXT or the SASL_PLAINTEXT listener")
    config = security.confluent_config()
    if not security.uses_sasl:
        return config
    user, password = (_quoted(config.pop(f"sasl.{name}")) for name in ("username", "password"))
    login = f"{LOGIN} required username={user} password={password};"
    return {**config, "sasl.jaas.config": login}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class LineReader:
    """Reads whole lines from a pipe without waiting longer than a timeout."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._descriptor = pipe.fileno()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._descriptor, selectors.EVENT_READ)
        self._rest = b""
        self.is_at_end = False

    def read(self, timeout_seconds: float) -> list[str]:
        """Return the lines that have come; at the end of the pipe also an unfinished one."""
        if self.is_at_end or not self._selector.select(timeout_seconds):
            return []
        data = os.read(self._descriptor, READ_BYTES)
        self.is_at_end = not data
        *whole, self._rest = (self._rest + data).split(b"\n")
        if self.is_at_end and self._rest:
            whole.append(self._rest)
        return [line.decode(errors="replace") for line in whole]

    def close(self) -> None:
        """Give the selector back; the pipe belongs to the process."""
        self._selector.close()


@dataclass(eq=False, kw_only=True)
class JavaTool(Workload):
    """A verifiable client of the sandbox's own Kafka version; `settings` are Java's names."""

    sandbox: Sandbox = field(kw_only=False)
    jvm: tuple[str, ...] = ()  # further options of its Java, such as an agent

    main_class: ClassVar[str]  # of the tool
    config_option: ClassVar[str]  # by which it is given the file of its settings

    @abstractmethod
    def arguments(self) -> list[str]:
        """Return the tool's own arguments, beside those that all have."""

    def client_settings(self) -> Mapping[str, str]:
        """Return settings of this kind of client; `settings` win."""
        return {}

    def _run(self) -> None:
        if not node_layout(self.sandbox.directory, CONTROLLER_ID).scratch.is_dir():
            raise SandboxError(f"no sandbox in {self.sandbox.directory}")
        with scratch_folder(self.sandbox.directory, "client-") as folder:
            config = Path(folder) / "client.properties"
            settings = {**java_security(self.security), **self.client_settings(), **self.settings}
            config.write_text(render(settings), encoding="ascii")
            with subprocess.Popen(
                self._command(Path(folder), config),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=folder,
                start_new_session=True,  # Ctrl-C is for us: we end it in order
            ) as process:
                self._follow(process)

    def _command(self, scratch: Path, config: Path) -> list[str]:
        options = (HEAP, marker(self.sandbox.directory), *self.jvm)
        command = tool_command(
            self.sandbox.state, self.main_class, scratch=scratch, options=options
        )
        servers = (
            self.sandbox.sasl_bootstrap_servers
            if self.security.uses_sasl
            else self.sandbox.bootstrap_servers
        )
        common = ["--bootstrap-server", servers, "--topic", self.topic]
        bound = [] if self.count is None else ["--max-messages", str(self.count)]
        own = [*self.arguments(), self.config_option, str(config)]
        return [*command, *common, *bound, *own]

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        if process.stdout is None:
            raise SandboxError(f"{self.label} has no output to read")
        reader = LineReader(process.stdout)
        last_text = ""
        try:
            while self._goes_on(0) and not reader.is_at_end:  # the tool itself knows `count`
                last_text = self._take(reader.read(WATCH_SECONDS)) or last_text
            ended_by_us = not reader.is_at_end
            self._end(process, reader)
        finally:
            reader.close()
            process.kill()  # does nothing to one that has ended
        if process.returncode not in (EXPECTED_ENDS if ended_by_us else {0}):
            raise SandboxError(f"{self.label} ended with {process.returncode}: {last_text}")

    def _end(self, process: subprocess.Popen[bytes], reader: LineReader) -> None:
        if not reader.is_at_end:
            process.terminate()
        deadline = monotonic() + END_SECONDS
        while not reader.is_at_end and monotonic() < deadline:
            self._take(reader.read(WATCH_SECONDS))
        try:
            process.wait(max(0.0, deadline - monotonic()))
        except subprocess.TimeoutExpired:
            self.tally.note(f"{self.label} did not end in order and was killed")
            process.kill()
            process.wait()

    def _take(self, lines: list[str]) -> str | None:
        """Count the tool's lines; return the last one of another kind that says something."""
        text = None
        for line in lines:
            counted = parse_event(line)
            if counted is None:
                text = line.strip() if is_cause_line(line) else text
            else:
                self.tally.add(counted)
        return text


@dataclass(eq=False, kw_only=True)
class JavaProducer(JavaTool):
    """Kafka's VerifiableProducer, made idempotent.

    It sends increasing integers as values; a record counts as sent when its fate is known.

    The tool switches retries off, and with them idempotence, unless its settings file says
    otherwise (KafkaProducer: "Idempotence will be disabled because retries is set to 0").
    """

    main_class = "org.apache.kafka.tools.VerifiableProducer"
    config_option = "--producer.config"
    rate: int = 200  # records per second, about

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rate < 1:
            raise SandboxError("rate (records/s) of a producer must be at least 1")

    @property
    def label(self) -> str:
        """How a message calls this workload."""
        return f"Java producer to {self.topic}"

    def client_settings(self) -> Mapping[str, str]:
        """Return what makes it idempotent."""
        return {"acks": "all", "enable.idempotence": "true", "retries": str(2**31 - 1)}

    def arguments(self) -> list[str]:
        """Return the pace, and how many keys there are."""
        return ["--throughput", str(self.rate), "--repeating-keys", str(KEYS)]
