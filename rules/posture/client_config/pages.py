"""The page of what clients' files can say, docs/posture-client-config.md: `make golden` writes its tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rules.posture.client_config.finding import CHECKS
from rules.posture.client_config.reasons import WORDS
from rules.posture.line import PostureVerdict

PAGE: Final = "posture-client-config.md"
BEGIN: Final = "<!-- written by make golden: begin -->"
END: Final = "<!-- written by make golden: end -->"


def with_tables(page: str) -> str:
    """Return the page with its tables written anew; the prose stays."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    tables = "\n".join(_tables())
    return f"{head}{BEGIN}\n\n{tables}\n\n{END}{tail}"


def _tables() -> Iterator[str]:
    yield "| check | setting | what must hold |"
    yield "|---|---|---|"
    for check in CHECKS:
        setting = f"`{check.setting}`" if check.setting else "any"
        yield f"| `{check.check_id}` | {setting} | {check.summary} |"
    yield ""
    yield "| reason | verdict | what it means | what to set |"
    yield "|---|---|---|---|"
    for reason, words in WORDS.items():
        meaning, fix = (
            text.replace("{detail}", "…").replace("{right}", "…")
            for text in (words.consequence, words.fix)
        )
        yield f"| `{reason}` | {PostureVerdict.of(words.verdict)} | {meaning} | {fix} |"
