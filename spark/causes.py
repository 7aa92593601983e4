"""What Spark's long texts say, in one line."""

from __future__ import annotations

import re
from typing import Final

MOST_CHARACTERS: Final = 1000
_RAISED: Final = re.compile(
    r"^(?:Caused by: |: )?([\w.$]*(?:Error|Exception)): (.+)$", re.MULTILINE
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
