"""The job as a process of its own, and a real standalone cluster from PySpark's own jars."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psutil
import pyspark

from service.jobs.baseline_run.spark_process import SparkOrder, run_job
from service.runtime.clock import wait_until
from tests.spark.weeks import DAYS, ZONE, day_at

JARS: Final = Path(pyspark.__file__).parent / "jars"
WAIT_SECONDS: Final = 300.0
LIGHT: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # for JVMs that live for seconds
ALL_DAYS: Final = [day_at(one).isoformat() for one in range(DAYS)]


def order(
    history: Path,
    scratch: Path,
    *,
    master: str = "local[1]",
    days: Sequence[str] = ALL_DAYS,
    conf: Mapping[str, str] | None = None,
    timeout_seconds: float = WAIT_SECONDS * 2,
) -> SparkOrder:
    """Return what `tidemark nightly run` would ask for."""
    return SparkOrder(
        master=master,
        conf=conf or {},
        arguments=["--history", str(history), "--zone", ZONE, "--keep", "10", *days],
        scratch=scratch,
        timeout_seconds=timeout_seconds,
    )


def run(order: SparkOrder) -> list[Mapping[str, Any]]:
    """Run the job to its end; return the events of its baseline runs."""
    return [event for event in run_job(order, os.environ) if event["event"] == "baseline_run"]


def family(pid: int) -> list[psutil.Process]:
    """Return a process with all that it started."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def kill_family(pid: int) -> None:
    """Kill -9 a process and all that it started, at once."""
    found = family(pid)
    for one in found:
        with suppress(psutil.NoSuchProcess):
            one.send_signal(signal.SIGKILL)
    psutil.wait_procs(found, timeout=WAIT_SECONDS)


def free_port() -> int:
    """Return a port that nobody has now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """Run one master and some workers with a core and a small heap each; give the master's address."""
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    own = ("--host", "127.0.0.1", "--webui-port", "0")
    words: list[tuple[str, ...]] = [
        ("org.apache.spark.deploy.master.Master", *own, "--port", str(port))
    ]
    words += [
        (
            "org.apache.spark.deploy.worker.Worker",
            *(*own, "--cores", "1", "--memory", "600m", "--work-dir", str(folder / f"work{one}")),
            master,
        )
        for one in range(workers)
    ]
    started: list[subprocess.Popen[bytes]] = []
    logs = [folder / f"{number}.log" for number in range(len(words))]
    try:
        for log, one in zip(logs, words, strict=True):
            with log.open("wb") as stream:
                started.append(_java(one, stream, folder))
        assert wait_until(
            lambda: len(_registered(logs[0])) == workers, timeout_seconds=WAIT_SECONDS
        ), logs[0].read_text()
        yield master
    finally:
        for process in reversed(started):
            kill_family(process.pid)
            process.wait()


def _registered(log: Path) -> set[str]:
    """Return the workers that a master knows; those that are not answered in time register again."""
    _, _, since_it_leads = log.read_text("utf-8").partition("New state: ALIVE")
    return set(re.findall(r"Registering worker (\S+)", since_it_leads))


def _java(words: Sequence[str], stream: Any, folder: Path) -> subprocess.Popen[bytes]:
    """Start a daemon of Spark's; its level of logging tells who has registered."""
    properties = folder / "log4j2.properties"
    properties.write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.out.ref = out\n"
        "appender.out.type = Console\nappender.out.name = out\nappender.out.target = SYSTEM_ERR\n"
        "appender.out.layout.type = PatternLayout\nappender.out.layout.pattern = %m%n\n"
    )
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else "java"
    command = [
        *(str(java), "-cp", f"{JARS}/*", "-Xmx256m", *LIGHT.split()),
        *(f"-Dlog4j2.configurationFile={properties}", "-Dspark.master.rest.enabled=false"),
        *words,
    ]
    environment = os.environ | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(JARS.parent),
        "SPARK_SCALA_VERSION": next(JARS.glob("scala-library-*")).name.split("-")[2][:4],
        "SPARK_LOCAL_DIRS": str(folder),
    }
    environment.pop("PYTHONPATH", None)  # what tasks need of ours comes with the job
    return subprocess.Popen(command, stdout=stream, stderr=stream, env=environment, cwd=folder)
