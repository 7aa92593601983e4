"""Find a Java that can run Kafka, or say what to install."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from rules.errors import SandboxError
from service.runtime.java import OLDEST, java_of, parse_major

INSTALL = "install one: apt-get install openjdk-17-jre-headless (or set JAVA_HOME)"


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
    path = java_of(os.environ)
    if path is None:
        raise SandboxError(f"Java is not installed, and Kafka needs {OLDEST} or newer: {INSTALL}")
    return path
