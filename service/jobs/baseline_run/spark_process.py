"""Starts a Spark job as a process of its own, reads its events, and ends it in time.

Between this process and the job is the guard of the scheduler, so that Spark's JVM and its Python workers
end with the job: at its timeout, at an interrupt, and when this process is killed.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rules.errors import BaselineRunError
from service.jobs.baseline_run.reporting import JsonObject
from service.runtime.children import (
    PYTHON,
    TREE,
    child_environment,
    module_command,
    script_command,
)
from service.runtime.clock import monotonic
from service.scheduling import guard
from spark.causes import with_word_of_java
from spark.home import find_spark_home
from spark.user import is_named, named_environment

SHIPPED: Final = ("rules", "spark")  # what tasks import of ours
PATIENCE_SECONDS: Final = 10.0  # for Spark to end after SIGTERM
GUARD_SECONDS: Final = 60.0  # for the guard, to end everything
# In the folder of the run:
ERRORS: Final = "spark.err"
CONF: Final = "spark-conf.json"
SHIPMENT: Final = "tidemark.zip"
KEPT_CHARACTERS: Final = 2000  # of what Spark wrote last
# Settings of another Spark must not come in by the environment; a cluster's settings belong in conf.
FOREIGN: Final = ("PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE", "SPARK_LOCAL_HOSTNAME")
OWN_SETTINGS: Final = "TIDEMARK_"  # begins variables that are the service's, secrets among them
KILLED: Final = 128 + 9


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOrder:
    """How to run the job."""

    master: str
    conf: Mapping[str, str]
    arguments: Sequence[str]  # of the job, beside the two above
    scratch: Path  # absolute: a folder of this run alone, where it works
    timeout_seconds: float
    module: str = "spark.jobs.nightly"

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
    if not order.is_local:
        _ship(order.scratch / SHIPMENT)
    with os.fdopen(os.open(order.scratch / CONF, os.O_WRONLY | os.O_CREAT, 0o600), "w") as conf:
        json.dump(dict(order.conf), conf)
    with (order.scratch / ERRORS).open("wb") as errors:
        return subprocess.Popen(
            _words(order),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=order.scratch,
            env=job_environment(order, environment),
            start_new_session=True,  # Ctrl-C in a terminal is ours to hear
        )


def job_environment(
    order: SparkOrder, environment: Mapping[str, str], uid: int | None = None
) -> dict[str, str]:
    """Return the environment of the job, and so of Spark's JVM and its Python workers.

    `uid` is the user whom they run as, by default that of this process.
    """
    own = {
        name: value
        for name, value in child_environment(environment).items()
        if name not in FOREIGN and not name.startswith(OWN_SETTINGS)
    }
    java = [own.get("JAVA_TOOL_OPTIONS"), _java_option("java.io.tmpdir", order.scratch)]
    ours = {
        "PYSPARK_PYTHON": order.conf.get("spark.pyspark.python", PYTHON),
        "PYSPARK_DRIVER_PYTHON": PYTHON,
        "SPARK_HOME": str(find_spark_home()),  # Spark's own search looks at where we are
        # Files of a killed Spark lie where the next run removes them. Spark reads a list, in which the name
        # of the folder that it works in might be several.
        "SPARK_LOCAL_DIRS": ".",
        "TMPDIR": str(order.scratch),
        "OMP_NUM_THREADS": "1",  # a task has one core
    }
    if order.is_local or "//127.0.0.1" in order.master:
        ours["SPARK_LOCAL_IP"] = "127.0.0.1"
    quiet = {"SPARK_CONF_DIR": str(TREE / "spark" / "conf")}  # an operator's own folder wins
    if not is_named(os.geteuid() if uid is None else uid):
        java.append(_java_option("user.home", order.scratch))
        quiet |= named_environment()
    ours["JAVA_TOOL_OPTIONS"] = " ".join(filter(None, java))
    return quiet | own | ours


def _java_option(name: str, path: Path) -> str:
    """Return an option of Java's, quoted as JAVA_TOOL_OPTIONS has it: nothing is special in quotes."""
    return f"-D{name}=" + '"{}"'.format(str(path).replace('"', '"\'"\'"'))


def _ship(archive: Path) -> None:
    """Zip our modules that tasks import, for executors on other machines."""
    with zipfile.ZipFile(archive, "w") as shipped:
        for package in SHIPPED:
            for path in sorted((TREE / package).rglob("*.py")):
                shipped.write(path, path.relative_to(TREE))


def _words(order: SparkOrder) -> list[str]:
    # By name alone: Spark takes commas and other characters of a path for its own.
    shipped = () if order.is_local else ("--py-files", SHIPMENT)
    job = module_command(order.module, "--master", order.master, "--conf-file", CONF)
    return [
        *script_command(Path(guard.__file__), str(PATIENCE_SECONDS)),
        *(*job, *shipped, *order.arguments),
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
