"""Find a Java that can run Kafka, or say what to install."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from rules.errors import SandboxError

OLDEST = 17  # Kafka 4 brokers need it
INSTALL = "install one: apt-get install openjdk-17-jre-headless (or set JAVA_HOME)"


def parse_major(version_output: str) -> int | None:
    """Return the major version out of `java -version`; 1.8 counts as 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', version_output)
    return int(match[1]) if match else None


def find_java() -> Path:
    """Return the Java of JAVA_HOME, else of PATH, once its version is new enough; absolute."""
    java = _locate().absolute()
    try:
        done = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise SandboxError(f"{java} does not run ({exc}); {INSTALL}") from exc
    major = parse_major(done.stderr + done.stdout)
    if major is None:
        raise SandboxError(f"{java} does not print its version; Kafka needs {OLDEST}+: {INSTALL}")
    if major < OLDEST:
        raise SandboxError(f"{java} is Java {major}, and Kafka needs {OLDEST} or newer: {INSTALL}")
    return java


def _locate() -> Path:
    home = os.environ.get("JAVA_HOME")  # Java's own convention, not a setting of Tidemark
    if home and (Path(home) / "bin/java").is_file():
        return Path(home) / "bin/java"
    path = shutil.which("java")
    if path is None:
        raise SandboxError(f"Java is not installed, and Kafka needs {OLDEST} or newer: {INSTALL}")
    return Path(path)
