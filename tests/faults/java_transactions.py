"""A transactional producer of Kafka's own client, which does one step at a time and says how it went.

A JRE has no compiler: Janino, which comes with PySpark, compiles the class (docs/decisions/0005).
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Final, Self

from service.sandbox.cluster import jars
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.commands import JAVA_FLAGS, marker
from service.sandbox.cluster.properties import render
from tests.applications.java_classes import compile_classes

SOURCE: Final = Path(__file__).parent / "java" / "TransactionSteps.java"
STEP_SECONDS: Final = 60.0
HEAP: Final = "-Xmx128m"
OK: Final = "OK"


def make_class_path(cluster: Sandbox, folder: Path) -> str:
    """Return the class path with the compiled producer in `folder` and the sandbox's own jars."""
    state = cluster.state
    lock = jars.read_lock(state.release.lock_file)
    published = jars.classpath(Path(state.cache) / "jars", lock, state.release.version)
    compile_classes([SOURCE], published, folder)
    return f"{folder}:{published}"


@dataclass(eq=False, kw_only=True)
class JavaTransactions:
    """The process; `timeout_ms` is of its transactions, `delivery_ms` of its records."""

    cluster: Sandbox
    class_path: str
    folder: Path
    bootstrap_servers: str
    topic: str
    timeout_ms: int = 60_000
    delivery_ms: int = 120_000
    _answers: Queue[str] = field(default_factory=Queue, init=False)

    def __enter__(self) -> Self:
        file = self.folder / f"{self.topic}.properties"
        file.write_text(render(self._settings()), encoding="ascii")
        flags = (HEAP, marker(self.cluster.directory), *JAVA_FLAGS)
        command = [self.cluster.state.java, *flags, "-cp", self.class_path, "TransactionSteps"]
        self._process = subprocess.Popen(
            [*command, str(file), self.topic],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.wait(STEP_SECONDS)
        self._reader.join(STEP_SECONDS)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def do(self, *steps: str) -> str:
        """Do some steps; return what the last one answered, such as OK or the class of its error."""
        answer = ""
        for step in steps:
            assert self._process.stdin is not None
            self._process.stdin.write(f"{step}\n")
            self._process.stdin.flush()
            try:
                answer = self._answers.get(timeout=STEP_SECONDS)
            except Empty:
                raise AssertionError(f"no answer to {step!r} on {self.topic}") from None
        return answer.split(" ", 2)[-1]

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("= "):
                self._answers.put(line.strip())

    def _settings(self) -> dict[str, str]:
        return {
            "acks": "all",
            "batch.size": "1",  # a record is a batch: several are in flight
            "bootstrap.servers": self.bootstrap_servers,
            "delivery.timeout.ms": str(self.delivery_ms),
            "linger.ms": "0",
            "metadata.max.age.ms": "2000",
            "request.timeout.ms": str(min(self.delivery_ms // 2, 4000)),
            "transaction.timeout.ms": str(self.timeout_ms),
            "transactional.id": self.topic,
        }
