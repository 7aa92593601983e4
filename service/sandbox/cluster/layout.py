"""Paths of the sandbox, and which of the files below them are ours to remove.

`down` takes back only what the sandbox or its brokers made. A file that somebody else laid
there (a copied partition, notes of a game day) is foreign and stays.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePath

STATE_FILE = "sandbox.json"
NODE_FILES = frozenset({"kafka.properties", "output.log"})
LOG_FILES = re.compile(r"(server|controller|state-change|kafka-authorizer|hs_err_pid)[\w.-]*")
DATA_FILES = re.compile(
    r"(\.lock|\.kafka_cleanshutdown|meta\.properties|bootstrap\.checkpoint|quorum-state"
    r"|partition\.metadata|[\w.-]*(checkpoint[a-z.]*|\.tmp)"
    r"|[\w.-]+\.(log|index|timeindex|txnindex|snapshot)(\.deleted|\.cleaned|\.swap)?)"
)
NODE_FOLDER = re.compile(r"node-\d+")


def default_directory() -> Path:
    """Return the sandbox folder of this user, by the XDG convention.

    The environment is read here and not in the service's settings: the sandbox runs without any.
    """
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local/state")
    return Path(os.environ.get("TIDEMARK_SANDBOX__DIR") or Path(home) / "tidemark/sandbox")


def default_cache() -> Path:
    """Return the folder of downloaded jars of this user, by the XDG convention."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(os.environ.get("TIDEMARK_SANDBOX__CACHE") or Path(home) / "tidemark")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLayout:
    """Where one node keeps its files."""

    properties: Path  # Kafka's configuration file
    output: Path  # of the process: what Java says before logging starts
    data: Path  # Kafka's log.dirs
    logs: Path  # server.log, controller.log, state-change.log
    scratch: Path  # Java's temporary folder: native libraries of a killed broker stay here

    def make(self) -> None:
        """Create the folders."""
        for folder in (self.data, self.logs, self.scratch):
            folder.mkdir(parents=True, exist_ok=True)


def node_layout(directory: Path, node_id: int) -> NodeLayout:
    """Return the paths of one node."""
    root = directory / f"node-{node_id}"
    return NodeLayout(
        properties=root / "kafka.properties",
        output=root / "output.log",
        data=root / "data",
        logs=root / "logs",
        scratch=root / "tmp",
    )


def is_ours(relative: PurePath) -> bool:
    """Return whether the sandbox or its brokers made a file below the sandbox folder."""
    match relative.parts:
        case (name,):
            return name.startswith(STATE_FILE)
        case (node, *inner) if NODE_FOLDER.fullmatch(node):
            return _is_ours_in_node(tuple(inner))
        case _:
            return False


def _is_ours_in_node(parts: tuple[str, ...]) -> bool:
    match parts:
        case (name,):
            return name in NODE_FILES
        case ("logs", name):
            return bool(LOG_FILES.fullmatch(name))
        case ("data", *_, name):
            return bool(DATA_FILES.fullmatch(name))
        case ("tmp", *_):
            return True
        case _:
            return False


def remove_ours(directory: Path) -> list[Path]:
    """Remove our files, and every folder inside that is empty then; return what was spared."""
    spared = []
    for root, folders, files in os.walk(directory, topdown=False):
        for name in files:
            path = Path(root, name)
            if is_ours(path.relative_to(directory)):
                path.unlink(missing_ok=True)
            else:
                spared.append(path)
        spared += [link for link in (Path(root, name) for name in folders) if link.is_symlink()]
        if Path(root) != directory and not any(os.scandir(root)):
            Path(root).rmdir()
    return spared
