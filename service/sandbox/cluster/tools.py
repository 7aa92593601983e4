"""Kafka's own command-line tools, run from the sandbox's jars under the names of their scripts."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any, Final

from rules.errors import SandboxError
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.commands import marker, scratch_folder, tool_command
from service.sandbox.cluster.processes import Liveness, last_words
from service.sandbox.cluster.state import Role

HEAP: Final = "-Xmx256m"  # what Kafka's own scripts give a tool
QUIET_SECONDS: Final = 60.0
SERVERS: Final = "--bootstrap-server"
CONTROLLERS: Final = "--bootstrap-controller"
NO_LOG4J_WARNINGS: Final = "-Dslf4j.internal.verbosity=ERROR"
_TOOLS: Final = "org.apache.kafka.tools"


@dataclass(frozen=True, slots=True)
class Tool:
    """One of Kafka's scripts: the class that it runs, and how it gets the brokers' addresses."""

    main_class: str
    asks_brokers: bool = True  # by --bootstrap-server
    has_late_option: bool = False  # ... which belongs to a subcommand, after its name


# In 4.1.1, from bin/ of Kafka's release (other releases: `find_class`); clients of other systems
# (Connect, MirrorMaker) are not in the sandbox's jars.
TOOLS: Final[Mapping[str, Tool]] = MappingProxyType(
    {
        "kafka-acls.sh": Tool(f"{_TOOLS}.AclCommand"),
        "kafka-broker-api-versions.sh": Tool(f"{_TOOLS}.BrokerApiVersionsCommand"),
        "kafka-client-metrics.sh": Tool(f"{_TOOLS}.ClientMetricsCommand"),
        "kafka-cluster.sh": Tool(f"{_TOOLS}.ClusterTool", has_late_option=True),
        "kafka-configs.sh": Tool("kafka.admin.ConfigCommand"),
        "kafka-console-consumer.sh": Tool(f"{_TOOLS}.consumer.ConsoleConsumer"),
        "kafka-console-producer.sh": Tool(f"{_TOOLS}.ConsoleProducer"),
        "kafka-console-share-consumer.sh": Tool(f"{_TOOLS}.consumer.ConsoleShareConsumer"),
        "kafka-consumer-groups.sh": Tool(f"{_TOOLS}.consumer.group.ConsumerGroupCommand"),
        "kafka-consumer-perf-test.sh": Tool(f"{_TOOLS}.ConsumerPerformance"),
        "kafka-delete-records.sh": Tool(f"{_TOOLS}.DeleteRecordsCommand"),
        "kafka-dump-log.sh": Tool("kafka.tools.DumpLogSegments", asks_brokers=False),
        "kafka-features.sh": Tool(f"{_TOOLS}.FeatureCommand"),
        "kafka-get-offsets.sh": Tool(f"{_TOOLS}.GetOffsetShell"),
        "kafka-groups.sh": Tool(f"{_TOOLS}.GroupsCommand"),
        "kafka-leader-election.sh": Tool(f"{_TOOLS}.LeaderElectionCommand"),
        "kafka-log-dirs.sh": Tool(f"{_TOOLS}.LogDirsCommand"),
        "kafka-metadata-quorum.sh": Tool(f"{_TOOLS}.MetadataQuorumCommand"),
        "kafka-producer-perf-test.sh": Tool(f"{_TOOLS}.ProducerPerformance", asks_brokers=False),
        "kafka-reassign-partitions.sh": Tool(f"{_TOOLS}.reassign.ReassignPartitionsCommand"),
        "kafka-share-groups.sh": Tool(f"{_TOOLS}.consumer.group.ShareGroupCommand"),
        "kafka-streams-groups.sh": Tool(f"{_TOOLS}.streams.StreamsGroupCommand"),
        "kafka-topics.sh": Tool(f"{_TOOLS}.TopicCommand"),
        "kafka-transactions.sh": Tool(f"{_TOOLS}.TransactionsCommand"),
        "kafka-verifiable-consumer.sh": Tool(f"{_TOOLS}.VerifiableConsumer"),
        "kafka-verifiable-producer.sh": Tool(f"{_TOOLS}.VerifiableProducer"),
    }
)


def find_tool(name: str) -> Tool | None:
    """Return a tool by its script's name, with or without `.sh`; None for another name."""
    return TOOLS.get(name) or TOOLS.get(f"{name}.sh")


def with_servers(tool: Tool, arguments: Sequence[str], servers: str) -> list[str]:
    """Add the brokers' addresses where the tool needs them and the caller passed none."""
    words = list(arguments)
    has_servers = any(word.split("=")[0] in {SERVERS, CONTROLLERS} for word in words)
    if not tool.asks_brokers or has_servers:
        return words
    if tool.has_late_option:
        return [*words, SERVERS, servers] if words else words
    return [SERVERS, servers, *words]


def run(sandbox: Sandbox, name: str, arguments: Sequence[str]) -> int:
    """Run a tool on this process's own input and output; return its exit code as a shell does.

    Ctrl-C reaches the tool by itself, and a SIGTERM is passed on: it ends as it does alone.
    """
    with (
        _command(sandbox, name, arguments) as command,
        subprocess.Popen(command) as process,
        _signals_for(process),
    ):
        code = process.wait()
    return code if code >= 0 else 128 - code


def run_quietly(sandbox: Sandbox, name: str, arguments: Sequence[str]) -> str:
    """Run a tool without input; return what it printed, or raise with its last line."""
    with _command(sandbox, name, arguments) as command:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=QUIET_SECONDS,
                check=False,
                start_new_session=True,  # Ctrl-C is for us: what it is a step of is undone in order
            )
        except subprocess.TimeoutExpired as exc:
            raise SandboxError(f"{name} did not end within {QUIET_SECONDS:.0f} s") from exc
    if done.returncode != 0:
        raise SandboxError(
            f"{name} ended with {done.returncode}: {last_words(done.stdout + done.stderr)}"
        )
    return done.stdout


@contextlib.contextmanager
def _command(sandbox: Sandbox, name: str, arguments: Sequence[str]) -> Iterator[list[str]]:
    """Yield the whole command line while its scratch folder exists."""
    tool, state = find_tool(name), sandbox.state
    if tool is None:
        raise SandboxError(f"there is no tool {name!r}: tidemark sandbox tool --list")
    options = (HEAP, marker(sandbox.directory), NO_LOG4J_WARNINGS)
    with scratch_folder(sandbox.directory, "tool-") as scratch:
        command = tool_command(state, tool.main_class, scratch=Path(scratch), options=options)
        yield [*command, *with_servers(tool, arguments, _running_servers(sandbox))]


def _running_servers(sandbox: Sandbox) -> str:
    """Return the brokers that answer: Java's clients wait 30 s for a paused one among them."""
    brokers = [status for status in sandbox.status() if status.node.role is Role.BROKER]
    running = [status.node.address for status in brokers if status.liveness is Liveness.RUNNING]
    return ",".join(running) or sandbox.bootstrap_servers


@contextlib.contextmanager
def _signals_for(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Outlive Ctrl-C, which the terminal sends to the tool too, and pass SIGTERM on."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return

    def pass_on(_number: int, _frame: FrameType | None) -> None:
        process.terminate()

    def outlive(_number: int, _frame: FrameType | None) -> None:
        """Wait for the tool to end by itself."""

    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, outlive),
        signal.SIGTERM: signal.signal(signal.SIGTERM, pass_on),
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
