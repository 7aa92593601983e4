"""Writes docs/settings.md and the commented example of a tidemark.toml, both from the groups."""

from __future__ import annotations

import inspect
import textwrap
from itertools import groupby
from operator import attrgetter
from typing import Final

from service.settings.entries import Entry, entries, groups, written

LINE: Final = 100  # columns of a comment in the example
INTRODUCTION: Final = """\
# Settings

Generated from `service/settings/` by `make golden`; a test compares.

A later source wins: the defaults, the file that `--config FILE` names, the environment, then flags.
Nothing is read while the process runs. In the file a group is a table; in the environment a setting
is `TIDEMARK_<GROUP>__<KEY>`, and a list of tables is written there as JSON. With `_FILE` behind that
name the value is read from the file it names, which is how secrets arrive. An unknown key is rejected
wherever it is.

`tidemark config check` shows what is in effect and who gave it, `tidemark config example` prints a
commented `tidemark.toml`. A regular expression has to match a whole name.
"""
EXAMPLE_HEAD: Final = """\
# tidemark.toml: every setting of Tidemark.
#
# A line "#key = value" shows a default, or an example where the default is to have none: take
# the "#" away and change the value. The environment (TIDEMARK_<GROUP>__<KEY>) wins over this
# file, and flags win over both. `tidemark config check --config FILE` shows what is in effect.
"""


def settings_page() -> str:
    """Return the whole page: a table per group."""
    parts = [_section(group, list(rows)) for group, rows in _by_group()]
    return "\n".join([INTRODUCTION, *parts])


def example_file() -> str:
    """Return a tidemark.toml in which every setting is explained and none is set."""
    parts = [_table(group, list(rows)) for group, rows in _by_group()]
    return "\n".join([EXAMPLE_HEAD, *parts])


def _by_group() -> groupby[str, Entry]:
    return groupby(entries(), attrgetter("group"))


def _summary(group: str) -> str:
    return inspect.cleandoc(groups()[group].__doc__ or "")


def _section(group: str, rows: list[Entry]) -> str:
    head = (
        f"## {group}\n\n{_summary(group)}\n\n"
        "| key | in the environment | type, unit | default | meaning, and why this default |\n"
        "|---|---|---|---|---|\n"
    )
    return head + "".join(f"{_row(entry)}\n" for entry in rows)


def _row(entry: Entry) -> str:
    default = "" if entry.default in (None, "") else f"`{written(entry.default)}`"
    cells = (f"`{entry.key}`", f"`{entry.variable}`", entry.kind, default, entry.meaning)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _table(group: str, rows: list[Entry]) -> str:
    return "\n".join([f"# {_summary(group)}", f"[{group}]", *map(_comment, rows)])


def _comment(entry: Entry) -> str:
    text = f"{entry.meaning} [{entry.kind}]"
    comment = textwrap.wrap(
        text, LINE, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )
    setting = f"#{entry.key} = {written(entry.example)}"
    if entry.is_secret:
        setting = f"# (not in this file: {entry.variable})"
    return "\n".join([*comment, setting, ""])
