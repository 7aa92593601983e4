"""Holds what commands print as JSON against docs/schemas/, strictly: no field may be there that a schema lacks."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

import click
import jsonschema_rs

from service.terminal import answer

SCHEMAS: Final = Path(__file__).parents[1] / "docs" / "schemas"


def validate(command: str, document: object) -> None:
    """Raise if a document is not what its command may print; `command` is like "alerts ls"."""
    errors = list(_validator(command).iter_errors(json.loads(json.dumps(document))))
    if errors:
        raise AssertionError(f"tidemark {command} -o json: {errors[0]}")


def running_command() -> str | None:
    """Return the command that runs now; None outside of the whole tree of commands."""
    ctx = click.get_current_context(silent=True)
    names: list[str] = []
    while ctx is not None and ctx.parent is not None:
        names.append(str(ctx.info_name))
        ctx = ctx.parent
    is_whole = ctx is not None and ctx.command.name == "tidemark"
    return " ".join(reversed(names)) if is_whole else None


def validated_text(document: object, indent: int | None) -> str:
    """Return a document as JSON, as the original does, once it was held against its command's schema."""
    command = running_command()
    if command is not None:
        validate(command, document)
    return _ORIGINAL(document, indent)


_ORIGINAL: Final = answer.json_text


@cache
def _validator(command: str) -> Any:
    schema = json.loads((SCHEMAS / f"{command.replace(' ', '-')}.json").read_text(encoding="utf-8"))
    return jsonschema_rs.validator_for(_closed(schema))


def _closed(schema: Any) -> Any:
    """Return a schema that allows only fields which it names, unless it says what others are."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(part) for key, part in schema.items()}
    if isinstance(schema.get("properties"), dict):
        closed.setdefault("additionalProperties", False)
    return closed
