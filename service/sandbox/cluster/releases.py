"""The Kafka releases that the sandbox runs, and in what they differ for it.

A release is supported where `locks/` has a lock of its jars. `make versions` runs the faults on the
oldest and on the newest one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rules.errors import SandboxError

DEFAULT_VERSION: Final = "4.1.1"
LOCKS: Final = Path(__file__).with_name("locks")
_STEM: Final = "kafka-"
_LOG4J_1: Final = Path(__file__).with_name("log4j.properties")
_LOG4J_2: Final = Path(__file__).with_name("log4j2.xml")


@dataclass(frozen=True, slots=True)
class Release:
    """One release of Kafka, by its version."""

    version: str

    @property
    def lock_file(self) -> Path:
        """The list of its jars."""
        return LOCKS / f"{_STEM}{self.version}.lock"

    @property
    def log_flag(self) -> str:
        """Java's option that names the logging settings: Log4j 1 (reload4j) before Kafka 4.0."""
        if self._is_before(4, 0):
            return f"-Dlog4j.configuration={_LOG4J_1.as_uri()}"
        return f"-Dlog4j2.configurationFile={_LOG4J_2}"

    @property
    def has_scram_users(self) -> bool:
        """Whether KRaft keeps SCRAM users, given when storage is formatted (KIP-900)."""
        return not self._is_before(3, 5)

    @property
    def has_transactions_v2(self) -> bool:
        """Whether writing adds a partition to a transaction, as Java clients then do (KIP-890)."""
        return not self._is_before(4, 0)

    @property
    def terminates_by_name(self) -> bool:
        """Whether kafka-transactions.sh knows forceTerminateTransaction (KIP-939)."""
        return not self._is_before(4, 1)

    @property
    def elects_unclean(self) -> bool:
        """Whether its controller obeys unclean.leader.election.enable by itself (KAFKA-12670)."""
        return not self._is_before(3, 9)

    @property
    def verifies_transactions(self) -> bool:
        """Whether a leader asks the coordinator before it opens a transaction (KIP-890, part 1)."""
        return not self._is_before(3, 6)

    @property
    def features(self) -> tuple[str, ...]:
        """StorageTool's arguments for what a new cluster of this release leaves off otherwise."""
        return ("--feature", "share.version=1") if self._numbers[:2] == (4, 1) else ()

    @property
    def _numbers(self) -> tuple[int, ...]:
        return tuple(int(number) for number in self.version.split("."))

    def _is_before(self, *numbers: int) -> bool:
        return self._numbers < numbers


def supported() -> tuple[str, ...]:
    """Return the versions that have a lock, the oldest first."""
    versions = [path.stem.removeprefix(_STEM) for path in LOCKS.glob(f"{_STEM}*.lock")]
    return tuple(sorted(versions, key=lambda version: [int(part) for part in version.split(".")]))


def find_release(version: str) -> Release:
    """Return a supported release; raise with those that are."""
    if version not in supported():
        raise SandboxError(
            f"the sandbox has no Kafka {version}; it has {', '.join(supported())}: --kafka-version"
        )
    return Release(version)
