"""Download a list of jars with the Ivy that PySpark bundles: nothing to install but Java.

The list is explicit and not transitive, and POMs are not read: nine seconds instead of a minute.
PySpark is only located, never imported.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from rules.errors import NotInstalledError, SandboxError
from service.runtime.children import FOLDER
from service.runtime.clock import wait_until
from spark.home import find_spark_home

SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""
DEADLINE_SECONDS = 600.0  # a slow line needs minutes for 47 MB; a dead one must end some day
FULL_BYTES = 1_000_000  # less than this after a failed download: that was the reason
PROGRESS_STEP = 8  # jars per progress line

Coordinate = tuple[str, str, str]


def render_modules(coordinates: Sequence[Coordinate]) -> str:
    """Return the ivy.xml that asks for exactly these (organisation, name, revision).

    A lock may have two revisions of one jar, of which Ivy would choose one by itself.
    """
    lines = "".join(
        f"<dependency org={quoteattr(org)} name={quoteattr(name)} rev={quoteattr(revision)} "
        'transitive="false" conf="default->default"/>\n'
        for org, name, revision in coordinates
    )
    return (
        '<ivy-module version="2.0"><info organisation="tidemark" module="sandbox"/>\n'
        '<configurations><conf name="default"/></configurations>\n'
        f'<dependencies>\n{lines}<conflict manager="all"/>\n</dependencies></ivy-module>\n'
    )


def find_ivy() -> Path:
    """Return the Ivy jar in PySpark's folder."""
    try:
        folder = find_spark_home() / "jars"
    except NotInstalledError as exc:
        raise SandboxError(f"Kafka's jars are downloaded by the Ivy of Spark: {exc}") from exc
    jars = sorted(folder.glob("ivy-*.jar"))
    if not jars:
        raise SandboxError(f"there is no Ivy in {folder}: install PySpark again")
    return jars[-1]


def retrieve(
    coordinates: Sequence[Coordinate], work: Path, *, java: Path, progress: Callable[[str], None]
) -> None:
    """Download the jars into `work/jars`; raise SandboxError naming the first that failed."""
    (work / "settings.xml").write_text(SETTINGS, encoding="utf-8")
    (work / "ivy.xml").write_text(render_modules(coordinates), encoding="utf-8")
    command = [
        str(java), "-jar", str(find_ivy()),
        "-settings", str(work / "settings.xml"), "-ivy", str(work / "ivy.xml"),
        "-cache", str(work / "cache"), "-retrieve", str(work / "jars/[artifact]-[revision].[ext]"),
    ]  # fmt: skip
    output = work / "ivy.log"
    with output.open("wb") as log:
        code = _run(command, log.fileno(), _Progress(output, len(coordinates), progress))
    if code != 0 and shutil.disk_usage(work).free < FULL_BYTES:
        raise SandboxError(f"no space left for Kafka's jars (47 MB) in {work.parent}")
    if code != 0:
        raise SandboxError(f"Kafka's jars could not be downloaded: {explain(output.read_text())}")


def explain(output: str) -> str:
    """Return the line of Ivy's output that says best what went wrong."""
    for pattern in (
        r"Server access error[^\n]*",
        r"[\w.]*(?:UnknownHost|Connect|SSL)\w*Exception[^\n]*",
        r"No space left[^\n]*",
        r"(?:not found|FAILED)[^\n]*",
    ):
        match = re.search(pattern, output)
        if match:
            return match[0].strip()
    return (output.strip().splitlines() or ["Ivy said nothing"])[-1].strip()


class _Progress:
    """Counts the finished jars in Ivy's output, and reports progress every few jars."""

    def __init__(self, output: Path, total: int, progress: Callable[[str], None]) -> None:
        self._output, self._total, self._progress, self._reported = (
            output,
            total,
            progress,
            -PROGRESS_STEP,
        )

    def ended(self, process: subprocess.Popen[bytes]) -> bool:
        """Report new progress; return whether the process has ended."""
        done = self._output.read_text(errors="replace").count("[SUCCESSFUL ]")
        if done >= self._reported + PROGRESS_STEP:
            self._reported = done
            self._progress(f"Downloading Kafka's jars: {done} of {self._total}")
        return process.poll() is not None


def _run(command: Sequence[str], log: int, progress: _Progress) -> int:
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=FOLDER
    ) as process:
        try:
            wait_until(lambda: progress.ended(process), timeout_seconds=DEADLINE_SECONDS)
        finally:
            if process.poll() is None:
                process.kill()
    return process.returncode
