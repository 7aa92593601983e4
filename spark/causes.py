"""What Spark's long texts say, in one line."""

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
    """Return what Spark's long text says in one line: what was raised in the task, if anything was."""
    text = str(exc)
    raised = [
        f"{kind.rpartition('.')[2]}: {told}"
        for kind, told in _RAISED.findall(text)
        if not kind.endswith(_NOT_THE_CAUSE)
    ]
    first = next((line for line in text.splitlines() if line.strip()), type(exc).__name__)
    return (raised[0] if raised else first)[:MOST_CHARACTERS]


def with_word_of_java(told: str, written: str) -> str:
    """Return why Spark did not start, with what Java wrote about it where only that tells.

    Args:
        told: the cause as the job knows it.
        written: standard error of the job, of the launcher and of the JVM.
    """
    if STOPPED in told and (reason := _GAVE_UP.search(written)):
        return f"{told} Spark: {reason[1].strip()}"[:MOST_CHARACTERS]
    if NO_JVM not in told:
        return told
    word = next((line for line in written.splitlines() if not _NOISE.search(line)), None)
    return told if word is None else f"{told} Java: {word.strip()}"[:MOST_CHARACTERS]
