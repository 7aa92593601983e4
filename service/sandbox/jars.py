"""Kafka's published jars, pinned by name and SHA-256, in a cache of this user.

`kafka-jars.lock` is the whole truth: one line per jar, without transitive resolution, so that
nothing unlisted is ever loaded. Every use checks every hash (47 MB in a fifth of a second): a
truncated or altered jar is fetched again before Java sees it. `python -m service.sandbox.jars`
writes the lock anew from the coordinates it already lists.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rules.errors import SandboxError
from service.sandbox import ivy
from service.sandbox.java import find_java
from service.sandbox.locking import locked

LOCK_FILE = Path(__file__).with_name("kafka-jars.lock")
KAFKA_VERSION = "4.1.1"
AGENT_NAME = "jmx_prometheus_javaagent"
HEADER = "# organisation name revision sha256; written by `make kafka-lock`\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One published jar and the hash that its content must have."""

    organisation: str
    name: str
    revision: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Name inside the cache folder."""
        return f"{self.name}-{self.revision}.jar"


def parse_lock(text: str) -> tuple[Jar, ...]:
    """Read the lock's lines; comments and empty lines are skipped."""
    lines = [line.split() for line in text.splitlines() if line.strip() and line[0] != "#"]
    if any(len(fields) != 4 for fields in lines):
        raise SandboxError(f"{LOCK_FILE.name} is damaged: each line has four fields")
    return tuple(
        Jar(organisation=fields[0], name=fields[1], revision=fields[2], sha256=fields[3])
        for fields in lines
    )


def render_lock(jars: Iterable[Jar]) -> str:
    """Write the lock's text, sorted, so that a new pin is a small diff."""
    ordered = sorted(jars, key=lambda jar: (jar.organisation, jar.name))
    rows = (f"{jar.organisation} {jar.name} {jar.revision} {jar.sha256}\n" for jar in ordered)
    return HEADER + "".join(rows)


def damaged(folder: Path, jars: Sequence[Jar]) -> list[Jar]:
    """Return the jars that are absent or whose content is not the pinned one."""
    return [jar for jar in jars if sha256(folder / jar.file_name) != jar.sha256]


def ensure_jars(cache: Path, *, java: Path, progress: Callable[[str], None]) -> Path:
    """Return the folder of verified jars, downloading them when it is absent or damaged.

    The folder appears by one rename: an interrupted download leaves no half cache.
    """
    jars = parse_lock(LOCK_FILE.read_text(encoding="utf-8"))
    folder = cache / "jars"
    if not damaged(folder, jars):
        return folder
    with _clear_disk_errors(cache), locked(cache):
        bad = damaged(folder, jars)  # another `up` may have filled the cache meanwhile
        if bad and folder.exists():
            progress(f"{bad[0].file_name} is missing or damaged: fetching the jars again")
        if bad:
            _download(jars, folder, java=java, progress=progress)
    return folder


def classpath(folder: Path) -> str:
    """Return the class path of brokers and tools: every pinned jar but the agent."""
    jars = parse_lock(LOCK_FILE.read_text(encoding="utf-8"))
    return ":".join(str(folder / jar.file_name) for jar in jars if jar.name != AGENT_NAME)


def agent_jar(folder: Path) -> Path:
    """Return the path of the Prometheus JMX exporter."""
    jars = parse_lock(LOCK_FILE.read_text(encoding="utf-8"))
    return folder / next(jar.file_name for jar in jars if jar.name == AGENT_NAME)


def sha256(path: Path) -> str:
    """Return the file's hash in hexadecimal; empty when there is no file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _download(
    jars: Sequence[Jar], folder: Path, *, java: Path, progress: Callable[[str], None]
) -> None:
    for left_over in folder.parent.glob("download-*"):
        shutil.rmtree(left_over, ignore_errors=True)  # of a download that was killed
    work = Path(tempfile.mkdtemp(prefix="download-", dir=folder.parent))
    try:
        coordinates = [(jar.organisation, jar.name, jar.revision) for jar in jars]
        ivy.retrieve(coordinates, work, java=java, progress=progress)
        bad = damaged(work / "jars", jars)
        if bad:
            raise SandboxError(
                f"{bad[0].file_name} was downloaded but its SHA-256 is not the pinned one: "
                "is a proxy altering downloads?"
            )
        shutil.rmtree(folder, ignore_errors=True)
        (work / "jars").rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def _clear_disk_errors(cache: Path) -> Iterator[None]:
    try:
        cache.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as exc:
        raise SandboxError(f"cannot write the jar cache {cache}: {exc.strerror}") from exc


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def main() -> None:
    """Fetch the listed coordinates afresh and write the hashes of what arrived."""
    jars = parse_lock(LOCK_FILE.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        coordinates = [(jar.organisation, jar.name, jar.revision) for jar in jars]
        ivy.retrieve(coordinates, Path(name), java=find_java(), progress=_tell)
        folder = Path(name) / "jars"
        pinned = [replace(jar, sha256=sha256(folder / jar.file_name)) for jar in jars]
    LOCK_FILE.write_text(render_lock(pinned), encoding="utf-8")


if __name__ == "__main__":
    main()
