"""The runbooks of a rule: an operator's own before ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from rules.errors import NotThereError, SettingsError
from service.runbooks.form import Runbook, RunbookError, parse
from service.runtime.children import TREE
from service.terminal.typed_names import complete_name

OURS: Final = TREE / "docs" / "runbooks"  # in the repository, and in a wheel
MAX_BYTES: Final = 1_000_000

Warn = Callable[[str], None]


def rule_ids() -> tuple[str, ...]:
    """Return the ids of all rules."""
    from rules.catalogue.all_rules import EVERY  # noqa: PLC0415 - keeps `--help` fast

    return tuple(rule.meta.rule_id for rule in EVERY)


def read(path: Path, rules: Sequence[str]) -> Runbook:
    """Return the runbook of a file, whose name has to be its rule's.

    Raises:
        RunbookError: it cannot be read, or is not of the form.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise RunbookError(f"{path}: larger than {MAX_BYTES:,} bytes")
        text = content.decode("utf-8")
    except OSError as exc:
        raise RunbookError(f"{path}: {(exc.strerror or str(exc)).lower()}") from exc
    except UnicodeDecodeError as exc:
        raise RunbookError(f"{path}: not UTF-8") from exc
    runbook = parse(text, str(path), rules)
    if runbook.rule != path.stem:
        raise RunbookError(f"{path}:1: is of rule {runbook.rule}: name it {runbook.rule}.md")
    return runbook


def files_of(folder: Path) -> list[Path]:
    """Return the runbooks of a folder by name; README.md is none.

    Raises:
        SettingsError: there is no such folder, or it cannot be read.
    """
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".md")
    except OSError as exc:
        why = (exc.strerror or str(exc)).lower()
        raise SettingsError(f"the folder of runbooks cannot be read: {folder}: {why}") from exc
    return [path for path in files if path.stem != "README"]


def read_all(folder: Path | None, warn: Warn) -> Iterator[tuple[Runbook, bool]]:
    """Yield the runbook of each rule that has one, and whether it is an operator's own."""
    rules = rule_ids()
    own = {} if folder is None else {path.stem: path for path in files_of(folder)}
    for name in own.keys() - set(rules):
        warn(f"{own[name]}: no rule is called so; `tidemark rules ls` has their names")
    for rule in rules:
        runbook = _own(own.get(rule), rules, warn)
        if runbook is not None:
            yield runbook, True
        elif (OURS / f"{rule}.md").exists():
            yield read(OURS / f"{rule}.md", rules), False


def find(rule: str, folder: Path | None, warn: Warn) -> Runbook:
    """Return the runbook of a rule, or of the one whose name alone begins so; errors as `of_rule`.

    Raises:
        RequestError: several rules begin so.
    """
    return of_rule(complete_name(rule, rule_ids(), "rule"), folder, warn)


def of_rule(rule: str, folder: Path | None, warn: Warn) -> Runbook:
    """Return the runbook of a rule; an operator's own that cannot be used is warned of, and ours is taken.

    Raises:
        NotThereError: there is no such rule, or it has no runbook.
        SettingsError: the operator's folder cannot be read.
    """
    rules = rule_ids()
    own = None if folder is None else {path.stem: path for path in files_of(folder)}.get(rule)
    runbook = _own(own, rules, warn)
    if runbook is not None:
        return runbook
    if rule not in rules:
        raise NotThereError(f"this version has no rule {rule}: the service is of another one")
    if not (OURS / f"{rule}.md").exists():
        raise NotThereError(
            f"rule {rule} has no runbook; `tidemark rules show {rule}` says what to do"
        )
    return read(OURS / f"{rule}.md", rules)


def _own(path: Path | None, rules: Sequence[str], warn: Warn) -> Runbook | None:
    if path is None:
        return None
    try:
        return read(path, rules)
    except RunbookError as error:
        warn(f"{error}; the runbook of this version is shown instead")
        return None
