"""Kafka's published jars, pinned by name and SHA-256, in a cache of this user.

A lock, one per release of Kafka in `locks/`, is the whole truth: one line per jar, without transitive
resolution, so that nothing unlisted is ever loaded. Every use checks every hash (47 MB in a fifth of
a second): a truncated or altered jar is fetched again before Java sees it. `python -m
service.sandbox.cluster.jars FILE...` writes locks anew from the coordinates that they already list.
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
from service.sandbox.cluster import ivy
from service.sandbox.cluster.java import find_java
from service.sandbox.cluster.locking import locked

KAFKA = "org.apache.kafka"
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
    def coordinate(self) -> ivy.Coordinate:
        """What a repository knows it by."""
        return self.organisation, self.name, self.revision

    @property
    def file_name(self) -> str:
        """Name inside the cache folder."""
        return f"{self.name}-{self.revision}.jar"


def parse_lock(text: str) -> tuple[Jar, ...]:
    """Read the lock's lines; comments and empty lines are skipped."""
    lines = [line.split() for line in text.splitlines() if line.strip() and line[0] != "#"]
    if any(len(fields) != 4 for fields in lines):
        raise SandboxError("the lock of jars is damaged: each line has four fields")
    return tuple(
        Jar(organisation=fields[0], name=fields[1], revision=fields[2], sha256=fields[3])
        for fields in lines
    )


def read_lock(path: Path) -> tuple[Jar, ...]:
    """Read a lock file."""
    return parse_lock(path.read_text(encoding="utf-8"))


def render_lock(jars: Iterable[Jar]) -> str:
    """Write the lock's text, sorted, so that a new pin is a small diff."""
    ordered = sorted(jars, key=lambda jar: jar.coordinate)
    rows = (f"{jar.organisation} {jar.name} {jar.revision} {jar.sha256}\n" for jar in ordered)
    return HEADER + "".join(rows)


def damaged(folder: Path, jars: Sequence[Jar]) -> list[Jar]:
    """Return the jars that are absent or whose content is not the pinned one."""
    return [jar for jar in jars if sha256(folder / jar.file_name) != jar.sha256]


def ensure_jars(
    cache: Path, jars: Sequence[Jar], *, java: Path, progress: Callable[[str], None]
) -> Path:
    """Return the folder of verified jars, downloading them when it is absent or damaged.

    The folder appears by one rename: an interrupted download leaves no half cache.
    """
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


def classpath(folder: Path, jars: Iterable[Jar], revision: str) -> str:
    """Return the class path of what a revision of Kafka runs: every pinned jar but the agent.

    Where a lock has Kafka's jars in two revisions, those of the other one come last.
    """
    used = [jar for jar in jars if jar.name != AGENT_NAME]
    used.sort(key=lambda jar: jar.organisation == KAFKA and jar.revision != revision)
    return ":".join(str(folder / jar.file_name) for jar in used)


def agent_jar(folder: Path, jars: Iterable[Jar]) -> Path:
    """Return the path of the Prometheus JMX exporter."""
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
        ivy.retrieve([jar.coordinate for jar in jars], work, java=java, progress=progress)
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


def _print_line(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def pin(lock_file: Path) -> None:
    """Fetch the listed coordinates afresh and write the hashes of what arrived."""
    jars = read_lock(lock_file)
    with tempfile.TemporaryDirectory() as name:
        ivy.retrieve(
            [jar.coordinate for jar in jars], Path(name), java=find_java(), progress=_print_line
        )
        folder = Path(name) / "jars"
        pinned = [replace(jar, sha256=sha256(folder / jar.file_name)) for jar in jars]
    if missing := [jar.file_name for jar in pinned if not jar.sha256]:
        raise SandboxError(f"not fetched: {', '.join(missing)}")
    lock_file.write_text(render_lock(pinned), encoding="utf-8")


def main() -> None:
    """Pin the lock files that are named."""
    for name in sys.argv[1:]:
        _print_line(name)
        pin(Path(name))


if __name__ == "__main__":
    main()
