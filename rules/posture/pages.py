"""The documentation pages of the checks: generated from their docstrings and what they declare.

`docs/posture/` holds the pages; docs/posture.md their list and docs/posture-client-config.md the tables of files of
clients' settings, each between two marks. A test compares.
"""

from __future__ import annotations

from typing import Final

from rules.pages import IncompleteRuleError, sections_of
from rules.posture.all_checks import CHECKS, RegisteredCheck
from rules.posture.client_config import finding
from rules.posture.client_config.reasons import WORDS
from rules.posture.commands import OF_TOPIC
from rules.posture.line import PostureVerdict

HEADINGS: Final = ("Judges", "What can go wrong", "How to set it", "What it does not say")
BEGIN: Final = "<!-- Generated from rules/posture/ by `make golden`; a test compares. -->\n"
END: Final = "<!-- End of what is generated. -->\n"
# What fills the templates of commands and sentences where there is no cluster.
_PLACE: Final = {"servers": "HOST:PORT", "name": "NAME"}
_NAMES: Final = {**_PLACE, "safe": f"{OF_TOPIC}min.insync.replicas=2".format_map(_PLACE)}


class _Words(dict[str, object]):
    """The words of a template: a name that is not known stands for itself, in capitals."""

    def __missing__(self, name: str) -> str:
        return name.upper()


def check_page(check: RegisteredCheck) -> str:
    """Return the Markdown page of a check.

    Raises:
        IncompleteRuleError: its docstring lacks one of the headings.
    """
    sections = sections_of(check.text)
    missing = [heading for heading in HEADINGS if heading not in sections]
    if missing:
        raise IncompleteRuleError(f"{check.meta.check_id} does not say: {', '.join(missing)}")
    body = "\n\n".join(f"## {heading}\n\n{sections[heading]}" for heading in HEADINGS)
    head = f"# {check.meta.check_id}\n\n{check.meta.summary}\n\n{_table(check)}"
    return f"{head}\n\n{body}\n\n{_reasons(check)}"


def with_checks(text: str) -> str:
    """Return docs/posture.md with the list of checks; its prose stays."""
    rows = "".join(
        f"| [{c.meta.check_id}](posture/{c.meta.check_id}.md) | {c.meta.scope} | `{c.meta.setting}` | {c.meta.summary} |\n"
        for c in CHECKS
    )
    table = f"| check | of each | setting | what has to hold |\n|---|---|---|---|\n{rows}"
    return _between_marks(text, table)


def with_client_settings(text: str) -> str:
    """Return docs/posture-client-config.md with the checks and reasons of files; its prose stays."""
    checks = "".join(
        f"| `{check.check_id}` | {f'`{check.setting}`' if check.setting else 'any'} | {check.summary} |\n"
        for check in finding.CHECKS
    )
    fill = {"detail": "…", "right": "…"}
    reasons = "".join(
        f"| `{reason}` | {PostureVerdict.of(words.verdict)} | {words.consequence.format_map(fill)} | "
        f"{words.fix.format_map(fill)} |\n"
        for reason, words in WORDS.items()
    )
    return _between_marks(
        text,
        f"| check | setting | what has to hold |\n|---|---|---|\n{checks}\n"
        f"| reason | verdict | what can go wrong | how to set it |\n|---|---|---|---|\n{reasons}",
    )


def _between_marks(text: str, content: str) -> str:
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{content}\n{END}{tail}"


def _table(check: RegisteredCheck) -> str:
    milder = "".join(f"; info for `{reason}`" for reason in sorted(check.meta.milder))
    rows = {
        "judges": f"each {check.meta.scope}",
        "setting": f"`{check.meta.setting}`",
        "severity": f"{check.meta.severity}{milder}",
        "reasons": ", ".join(f"`{reason}`" for reason in check.reasons) or "-",
    }
    lines = [f"| {name} | {value} |" for name, value in rows.items()]
    return "\n".join(["| | |", "|---|---|", *lines])


def _reasons(check: RegisteredCheck) -> str:
    """Return what each reason of something wrong, or not seen, says in a line."""
    rows = "".join(
        f"| `{reason}` | {_filled(advice.consequence)} | `{_filled(advice.fix)}` |\n"
        for reason, advice in check.advice.items()
    )
    title = "## What a line says\n\n| reason | what can go wrong | how to set it |\n|---|---|---|\n"
    return f"{title}{rows}"


def _filled(template: str) -> str:
    return template.format_map(_Words(_NAMES))
