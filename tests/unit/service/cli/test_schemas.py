"""Every command with `-o` has a committed schema, generated from what declares its document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import click
import jsonschema_rs
import pytest

from service.cli.main import tidemark
from service.sandbox.commands.documents import OF_SANDBOX
from service.schemas.schemas import FORMS, file_name, schema_pages
from tests.schemas import SCHEMAS, validate

# Its lines repeat requests of any sender, in whatever form these have.
WITHOUT: Final = frozenset({"sandbox receive"})
DEFAULTS: Final[dict[str, object]] = {"current": None, "contexts": []}  # a document of `context ls`


def commands_with_output(group: click.Group, *path: str) -> Iterator[str]:
    """Yield the commands below a group that have the option -o, like "alerts ls"."""
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if isinstance(command, click.Group):
            yield from commands_with_output(command, *path, name)
        elif command is not None and any("-o" in each.opts for each in command.params):
            yield " ".join((*path, name))


def test_every_command_with_a_document_has_a_schema_and_the_reverse() -> None:
    assert {*FORMS, *OF_SANDBOX} == set(commands_with_output(tidemark)) - WITHOUT


def test_the_schemas_are_up_to_date() -> None:
    written = {
        f"schemas/{path.name}": path.read_text(encoding="utf-8") for path in SCHEMAS.iterdir()
    }
    assert written == schema_pages({**FORMS, **OF_SANDBOX}), "run `make golden`"


def test_every_schema_is_one() -> None:
    for path in SCHEMAS.iterdir():
        jsonschema_rs.meta.validate(json.loads(path.read_text(encoding="utf-8")))


def test_a_field_of_a_later_version_is_no_error_for_scripts_and_one_for_tests() -> None:
    schema = json.loads((SCHEMAS / file_name("context ls")).read_text(encoding="utf-8"))
    later = {**DEFAULTS, "colour": "red"}
    jsonschema_rs.validate(schema, later)
    with pytest.raises(AssertionError, match="context ls -o json"):
        validate("context ls", later)
    with pytest.raises(AssertionError, match="context ls -o json"):
        validate("context ls", {"current": None})
