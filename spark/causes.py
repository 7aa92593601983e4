"""Extracts the cause from Spark's long error texts, in one line."""

from __future__ import annotations

import re
from typing import Final

MOST_CHARACTERS: Final = 1000
_RAISED: Final = re.compile(
    r"^(?:Caused by: |: )?([\w.$]*(?:Error|Exception)): (.+)$", re.MULTILINE
)
NO_JVM: Final = "JAVA_GATEWAY_EXITED"
STOPPED: Final = "stopped SparkContext"
_GAVE_UP: Final = re.compile(r"Reason: (.+)$", re.MULTILINE)  # a master that does not answer, say
_NOISE: Final = re.compile(
    r"^\s*$|^(NOTE: )?Picked up |^WARNING: |^Using |^[\d/]+ [\d:]+ (INFO|WARN) "
)
_NOT_THE_CAUSE: Final = ("PythonException", "SparkException", "Py4JJavaError")


def why(exc: BaseException) -> str:
    """Return the cause in one line: the exception raised in the task, if there is one."""
    text = str(exc)
    raised = [
        f"{kind.rpartition('.')[2]}: {message}"
        for kind, message in _RAISED.findall(text)
        if not kind.endswith(_NOT_THE_CAUSE)
    ]
    first = next((line for line in text.splitlines() if line.strip()), type(exc).__name__)
    return (raised[0] if raised else first)[:MOST_CHARACTERS]


def with_word_of_java(cause: str, written: str) -> str:
    """Return why Spark did not start, with Java's own words where only those name the cause.

    Args:
        cause: the cause that the job reported.
        written: standard error of the job, of the launcher and of the JVM.
    """
    if STOPPED in cause and (reason := _GAVE_UP.search(written)):
        return f"{cause} Spark: {reason[1].strip()}"[:MOST_CHARACTERS]
    if NO_JVM not in cause:
        return cause
    word = next((line for line in written.splitlines() if not _NOISE.search(line)), None)
    return cause if word is None else f"{cause} Java: {word.strip()}"[:MOST_CHARACTERS]
