r"""Regular expressions of RE2, as Alertmanager has them: they match whole values, in linear time.

Everyone who may silence alerts may write any pattern, and clients of a cluster choose the names that
it is tried on. `re` needs exponential time for some pairs of both, and a round must not wait for one.
Alertmanager uses Go's RE2. This one also accepts `\C`, and a bracket in a pattern cannot close the group
that Alertmanager puts around it.

Source: google/re2, doc/syntax.txt; prometheus/alertmanager, pkg/labels/matcher.go.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import re2

from rules.errors import TidemarkError

LONGEST_PATTERN: Final = 1024
MAX_MEMORY: Final = 1 << 20  # bytes of one pattern: its program, and its states while it runs
_REMEMBERED_VALUES: Final = 4096  # of one pattern: alerts of one topic have its name in common


class PatternError(TidemarkError):
    """A pattern that cannot be used; the text says why."""


def _options() -> re2.Options:
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.never_capture = True  # submatches are not used, and cost time
    options.log_errors = False  # they are raised
    return options


_OPTIONS: Final = _options()


def compile_pattern(text: str) -> Callable[[str], bool]:
    """Return a function that says whether a pattern matches all of a value.

    Raises:
        PatternError: it is too long, or RE2 rejects it; the text has RE2's reason and the part it names.
    """
    if len(text) > LONGEST_PATTERN:
        raise PatternError(f"it is longer than {LONGEST_PATTERN} characters")
    try:
        compiled = re2.compile(_utf8(text), _OPTIONS)
    except re2.error as exc:
        reason, _, part = exc.args[0].decode(errors="replace").partition(": ")
        raise PatternError(f"{reason}: {part!r}" if part else reason) from exc

    @lru_cache(_REMEMBERED_VALUES)
    def matches(value: str) -> bool:
        return compiled.fullmatch(_utf8(value)) is not None

    return matches


def _utf8(text: str) -> bytes:
    return text.encode(errors="surrogatepass")  # text that is no Unicode must not end a round
