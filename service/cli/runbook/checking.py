"""Checks a runbook beyond its form: commands that are read, placeholders that an alert fills, reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.cli.runbook.library import read
from service.runbooks.commands import Effect, fill
from service.runbooks.form import Block, BlockKind, Runbook, RunbookError


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is wrong with a runbook, and what is only worth a remark."""

    errors: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def check_file(path: Path, rules: Sequence[str]) -> Checked:
    """Return what is wrong with the runbook of a file."""
    try:
        runbook = read(path, rules)
    except RunbookError as error:
        return Checked(errors=(str(error),))
    return Checked(errors=tuple(_errors(runbook)), remarks=tuple(_remarks(runbook)))


def _errors(runbook: Runbook) -> Iterator[str]:
    from rules.catalogue.all_rules import EVERY  # noqa: PLC0415 - keeps `--help` fast

    rule = next(each for each in EVERY if each.meta.rule_id == runbook.rule)
    for block in runbook.blocks():
        for reason in set(block.when) - {str(reason) for reason in rule.reasons}:
            yield f"{runbook.source}:{block.line}: rule {runbook.rule} has no reason {reason!r}"
        yield from _command_errors(runbook, block)


def _command_errors(runbook: Runbook, block: Block) -> Iterator[str]:
    for line in block.commands:
        try:
            command = fill(line, {})
        except ValueError as exc:
            yield f"{runbook.source}:{block.line}: {line!r} cannot be read: {exc}"
            continue
        if block.kind is BlockKind.DIAGNOSIS and command.effect is Effect.CHANGES:
            yield f"{runbook.source}:{block.line}: a diagnosis must not change anything: {line!r}"


def _remarks(runbook: Runbook) -> Iterator[str]:
    for block in runbook.blocks():
        for line in block.commands:
            try:
                effect = fill(line, {}).effect
            except ValueError:
                continue
            if block.kind is BlockKind.DIAGNOSIS and effect is Effect.UNKNOWN:
                yield (
                    f"{runbook.source}:{block.line}: not known to only read, it will be shown and "
                    f"not run: {line!r}"
                )
