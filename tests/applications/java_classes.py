"""The class path of the applications: their published jars, and what is compiled of ours.

A JRE has no compiler. Janino has been chosen for its place: it comes with PySpark, as Ivy does, and
compiles a file in a second (docs/decisions/0005).
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from service.sandbox.cluster import ivy, jars
from service.sandbox.cluster.java import find_java
from service.sandbox.cluster.layout import default_cache

HERE: Final = Path(__file__).parent
LOCK: Final = HERE / "application-jars.lock"
VERSION: Final = "4.1.1"  # of the applications' own Kafka
COMPILER: Final = "org.codehaus.commons.compiler.samples.CompilerDemo"  # takes javac's options
COMPILE_SECONDS: Final = 180.0


def make_class_path(folder: Path) -> str:
    """Return the class path, with our own classes in `folder`."""
    published = _published()
    compile_classes(sorted((HERE / "java").glob("*.java")), published, folder)
    return f"{folder}:{published}"


def compile_classes(sources: Iterable[Path], class_path: str, folder: Path) -> None:
    """Compile sources of ours into a folder."""
    command = [str(find_java()), "-cp", _janino(), COMPILER, "-d", str(folder)]
    subprocess.run(
        [*command, "-classpath", class_path, *map(str, sources)],
        check=True,
        timeout=COMPILE_SECONDS,
    )


def _published() -> str:
    pinned = jars.read_lock(LOCK)
    cache = default_cache() / f"applications-{VERSION}"
    folder = jars.ensure_jars(cache, pinned, java=find_java(), progress=lambda _: None)
    return jars.classpath(folder, pinned, VERSION)


def _janino() -> str:
    folder = ivy.find_ivy().parent
    found = [*folder.glob("janino-*.jar"), *folder.glob("commons-compiler-*.jar")]
    return ":".join(str(path) for path in found)
