"""Which Java this machine has: Spark and the sandbox run on it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

OLDEST: Final = 17  # Spark 4 and Kafka 4 need it
ANSWER_SECONDS: Final = 30


def parse_major(version_output: str) -> int | None:
    """Return the major version out of `java -version`; 1.8 counts as 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', version_output)
    return int(match[1]) if match else None


def java_of(environment: Mapping[str, str]) -> Path | None:
    """Return the Java of JAVA_HOME, else of PATH; None: there is none."""
    home = environment.get("JAVA_HOME")  # Java's own convention, not a setting of Tidemark
    if home and (Path(home) / "bin/java").is_file():
        return Path(home) / "bin/java"
    path = shutil.which("java", path=environment.get("PATH"))
    return None if path is None else Path(path)


def major_of(java: Path) -> int | None:
    """Return the major version of a Java by running it; None: it does not run, or prints none."""
    try:
        done = subprocess.run(
            [str(java), "-version"],
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_major(done.stderr + done.stdout)
