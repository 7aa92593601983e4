"""Starts the Spark job as a process of its own, reads its events, and ends it in time.

Between this process and the job is the guard of the scheduler, so that Spark's JVM and its Python workers
end with the job: at its timeout, at an interrupt, and when this process is killed.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import spark
from rules.errors import BaselineRunError
from service.jobs.baseline_run.reporting import JsonObject
from service.runtime.clock import monotonic
from service.scheduling import guard
from spark.causes import with_word_of_java

ROOT: Final = Path(spark.__file__).parent.parent  # of the sources
SHIPPED: Final = ("rules", "spark")  # what tasks import of ours
PATIENCE_SECONDS: Final = 10.0  # for Spark to end after SIGTERM
GUARD_SECONDS: Final = 60.0  # for the guard, to end everything
ERRORS: Final = "spark.err"
KEPT_CHARACTERS: Final = 2000  # of what Spark wrote last
# Settings of another Spark must not come in by the environment; a cluster's settings belong in conf.
FOREIGN: Final = ("SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE", "SPARK_LOCAL_HOSTNAME")
KILLED: Final = 128 + 9


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOrder:
    """How to run the job."""

    master: str
    conf: Mapping[str, str]
    arguments: Sequence[str]  # of `spark.jobs.nightly`, beside the two above
    scratch: Path  # a folder of this run alone: Spark's own files
    timeout_seconds: float

    @property
    def is_local(self) -> bool:
        """Whether Spark's tasks run on this machine, in processes that the job starts."""
        return self.master == "local" or self.master.startswith("local[")


def run_job(order: SparkOrder, environment: Mapping[str, str]) -> Iterator[JsonObject]:
    """Run the job to its end and yield its events, as `spark.reporting` describes them.

    Raises:
        BaselineRunError: it failed, was killed, or took too long; all of its processes are ended.
    """
    if (
        "JAVA_HOME" not in environment
        and shutil.which("java", path=environment.get("PATH")) is None
    ):
        raise BaselineRunError(
            "Spark needs Java 17 or newer, and there is none: install it, set JAVA_HOME"
        )
    deadline = monotonic() + order.timeout_seconds
    try:
        process = _start(order, environment)
    except OSError as exc:
        raise BaselineRunError(f"Spark cannot be started: {exc}") from exc
    failed = ""
    try:
        for event in _read_events(process, deadline):
            if event.get("event") == "failed":
                failed = str(event.get("why"))
            else:
                yield event
        status = process.wait(GUARD_SECONDS)
    except TimeoutError as exc:
        late_evidence = (
            f"it did not end within {order.timeout_seconds:g} s (nightly.timeout_seconds)"
        )
        raise BaselineRunError(f"Spark was broken off: {late_evidence}") from exc
    finally:
        _end(process)
    if status:
        raise BaselineRunError(_describe_failure(failed, status, order.scratch / ERRORS))


def _start(order: SparkOrder, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    order.scratch.mkdir(parents=True, exist_ok=True)
    with (order.scratch / ERRORS).open("wb") as errors:
        return subprocess.Popen(
            _words(order),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=job_environment(order, environment),
            start_new_session=True,  # Ctrl-C in a terminal is ours to hear
        )


def job_environment(order: SparkOrder, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the job, and so of Spark's JVM and its Python workers."""
    own = {name: value for name, value in environment.items() if name not in FOREIGN}
    paths = [str(ROOT), *filter(None, [environment.get("PYTHONPATH")])]
    java = [environment.get("JAVA_TOOL_OPTIONS"), f"-Djava.io.tmpdir={order.scratch}"]
    ours = {
        "PYTHONPATH": os.pathsep.join(paths),
        "PYSPARK_PYTHON": order.conf.get("spark.pyspark.python", sys.executable),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # Files of a killed Spark lie where the next run removes them.
        "SPARK_LOCAL_DIRS": str(order.scratch),
        "TMPDIR": str(order.scratch),
        "JAVA_TOOL_OPTIONS": " ".join(filter(None, java)),
        "OMP_NUM_THREADS": "1",  # a task has one core
    }
    if order.is_local or "//127.0.0.1" in order.master:
        ours["SPARK_LOCAL_IP"] = "127.0.0.1"
    quiet = {"SPARK_CONF_DIR": str(ROOT / "spark" / "conf")}  # an operator's own folder wins
    return quiet | own | ours


def ship(scratch: Path) -> Path:
    """Zip our modules that tasks import, for executors on other machines.

    Raises:
        OSError: it cannot be written.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    archive = scratch / "tidemark.zip"
    with zipfile.ZipFile(archive, "w") as shipped:
        for package in SHIPPED:
            for path in sorted((ROOT / package).rglob("*.py")):
                shipped.write(path, path.relative_to(ROOT))
    return archive


def _words(order: SparkOrder) -> list[str]:
    conf = [word for name, value in order.conf.items() for word in ("--conf", f"{name}={value}")]
    shipped = [] if order.is_local else ["--py-files", str(ship(order.scratch))]
    return [
        # -P: the guard's folder, or the one that we are in, may hold modules named like Python's.
        *(sys.executable, "-P", str(Path(guard.__file__)), str(PATIENCE_SECONDS)),
        *(sys.executable, "-P", "-m", "spark.jobs.nightly", "--master", order.master),
        *(*conf, *shipped, *order.arguments),
    ]


def _read_events(process: subprocess.Popen[bytes], deadline: float) -> Iterator[JsonObject]:
    """Yield the job's events until its end; other lines of its output are skipped."""
    if process.stdout is None:
        return
    waiting = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            left = deadline - monotonic()
            if left <= 0:
                raise TimeoutError
            if not selector.select(left):
                continue
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                return
            *lines, waiting = (waiting + chunk).split(b"\n")
            yield from filter(None, map(_read, lines))


def _read(line: bytes) -> JsonObject | None:
    try:
        read = json.loads(line)
    except ValueError:
        return None
    return read if isinstance(read, dict) and "event" in read else None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Have the guard end all processes; if it does not, kill it, and with it the job."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    try:
        process.wait(GUARD_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _describe_failure(failed: str, status: int, errors: Path) -> str:
    written = errors.read_text("utf-8", "replace").strip()
    return with_word_of_java(failed, written) if failed else _describe_death(status, written)


def _describe_death(status: int, written: str) -> str:
    wrote = written[-KEPT_CHARACTERS:]
    last = next(iter(reversed(wrote.splitlines())), "")
    if status == KILLED:
        return f"Spark was killed; where memory is short the system does that: {last or 'no word'}"
    return f"Spark ended with status {status}: {last or 'no word'}"
