"""The command lines of brokers, controller and Kafka's tools."""

from __future__ import annotations

import functools
import hashlib
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rules.errors import SandboxError
from service.sandbox.cluster.jars import Jar, agent_jar, classpath, read_lock
from service.sandbox.cluster.layout import node_layout
from service.sandbox.cluster.ports import HOST
from service.sandbox.cluster.state import CONTROLLER_ID, Node, SandboxState

PACKAGES = ("org.apache.kafka.tools", "kafka.admin", "kafka.tools")  # the newest first
HOLDERS = ("kafka_2.13", "kafka-tools")  # the jars that have a tool
EXPORTER_RULES = Path(__file__).with_name("jmx.yaml")
# A small machine: one collector thread, quick compiler only, and no file in the common /tmp.
JAVA_FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-CreateCoredumpOnCrash",
    "-Djava.awt.headless=true",
)


def archive_path(jars: Path, java: Path) -> Path:
    """Return where the class archive of this very Java binary lies; see archive.py."""
    binary = java.resolve()
    facts = f"{binary} {binary.stat().st_size} {binary.stat().st_mtime_ns}"
    return jars / f"classes-{hashlib.sha256(facts.encode()).hexdigest()[:12]}.jsa"


def archive_flags(jars: Path, java: Path) -> list[str]:
    """Return the options that use the class archive; none while there is no archive."""
    path = archive_path(jars, java)
    return [f"-XX:SharedArchiveFile={path}", "-Xshare:auto"] if path.exists() else []


def marker(directory: Path) -> str:
    """Return the argument that identifies the processes of this sandbox."""
    return f"-Dtidemark.sandbox={directory}"


def node_command(directory: Path, state: SandboxState, node: Node) -> list[str]:
    """Return the command of one broker or controller."""
    folder, paths = Path(state.cache) / "jars", node_layout(directory, node.id)
    jars = read_lock(state.release.lock_file)
    return [
        state.java,
        f"-Xmx{state.options.heap}",
        "-Duser.timezone=UTC",  # of the times in its logs
        *JAVA_FLAGS,
        *archive_flags(folder, Path(state.java)),
        f"-XX:ErrorFile={paths.logs}/hs_err_pid%p.log",
        f"-Djava.io.tmpdir={paths.scratch}",
        f"-Dkafka.logs.dir={paths.logs}",
        state.release.log_flag,
        marker(directory),
        f"-javaagent:{agent_jar(folder, jars)}={HOST}:{node.metrics_port}:{EXPORTER_RULES}",
        "-cp",
        classpath(folder, jars, state.release.version),
        "kafka.Kafka",
        str(paths.properties),
    ]


def scratch_folder(directory: Path, prefix: str) -> tempfile.TemporaryDirectory[str]:
    """Make a folder for a child of ours.

    It is below the sandbox, because `down` removes what is left there after a crash of ours.
    """
    home = node_layout(directory, CONTROLLER_ID).scratch
    return tempfile.TemporaryDirectory(prefix=prefix, dir=home, ignore_cleanup_errors=True)


def tool_command(
    state: SandboxState, main_class: str, *, scratch: Path, options: Sequence[str] = ()
) -> list[str]:
    """Return the beginning of a Kafka tool's command; its arguments follow.

    `main_class` is the tool's name in some release; others may have it elsewhere. `options` are
    Java's.
    """
    folder, jars = Path(state.cache) / "jars", read_lock(state.release.lock_file)
    tool = find_class(folder, jars, main_class, state.release.version)
    is_own = tool.revision == state.release.version  # the archive is of the brokers' classes
    return [
        state.java,
        *options,
        *JAVA_FLAGS,
        *(archive_flags(folder, Path(state.java)) if is_own else ()),
        f"-XX:ErrorFile={scratch}/hs_err_pid%p.log",
        f"-Djava.io.tmpdir={scratch}",
        state.release.log_flag,
        "-Dlog4j2.shutdownHookEnabled=false",  # or a producer that flushes at its end logs nothing
        f"-Dkafka.logs.dir={scratch}",
        "-cp",
        classpath(folder, jars, tool.revision),
        tool.name,
    ]


@dataclass(frozen=True, slots=True)
class ToolClass:
    """The class of a tool, and the revision of Kafka that it belongs to."""

    name: str
    revision: str


def find_class(folder: Path, jars: Iterable[Jar], main_class: str, version: str) -> ToolClass:
    """Return the class that these jars have for a tool, or raise when they have none.

    Most tools moved from Kafka's Scala core to kafka-tools between 3.3 and 4.3, one after the other.
    The jars themselves say where a class is, so that no table of moves has to be kept. kafka-tools
    may be of another release than the brokers where theirs has not been published.

    `main_class` is its name in some release, `version` that of the brokers, whose own classes come
    first.
    """
    holders = [jar for jar in jars if jar.name in HOLDERS]
    holders.sort(key=lambda jar: jar.revision != version)
    simple = main_class.rpartition(".")[2]
    for name in (main_class, *(f"{package}.{simple}" for package in PACKAGES)):
        for jar in holders:
            if name in _classes(folder / jar.file_name):
                return ToolClass(name, jar.revision)
    raise SandboxError(f"this Kafka has no tool {simple}: it came with a later release")


@functools.cache
def _classes(jar: Path) -> frozenset[str]:
    with zipfile.ZipFile(jar) as content:
        return frozenset(
            name.removesuffix(".class").replace("/", ".")
            for name in content.namelist()
            if name.endswith(".class") and "$" not in name
        )
