"""Writes docs/schemas/: a JSON Schema for what each command prints with `-o json`; a test compares.

A published schema allows fields that it does not name, because later versions add some; tests hold documents
against it without that allowance.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from service.schemas.forms import Form
from service.schemas.from_cluster import FROM_CLUSTER
from service.schemas.from_here import FROM_HERE
from service.schemas.from_server import FROM_SERVER

DIALECT: Final = GenerateJsonSchema.schema_dialect
MODE: Final[JsonSchemaMode] = "serialization"

# By command; those of the sandbox are in service/sandbox/commands/documents.py.
FORMS: Final[Mapping[str, Form]] = {**FROM_SERVER, **FROM_CLUSTER, **FROM_HERE}


class _Untitled(GenerateJsonSchema):
    """Gives fields no title: it would repeat the name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return whether a field gets a title of its own."""
        del schema
        return False


def schema_pages(forms: Mapping[str, Form]) -> dict[str, str]:
    """Return the schemas of commands by their paths below docs/."""
    return {f"schemas/{file_name(command)}": page(command, forms[command]) for command in forms}


def file_name(command: str) -> str:
    """Return the file of a command like "alerts ls"."""
    return f"{command.replace(' ', '-')}.json"


def page(command: str, form: Form) -> str:
    """Return the schema of a command's document as it is committed, keys sorted."""
    made = TypeAdapter(form).json_schema(mode=MODE, schema_generator=_Untitled)
    schema = {**_opened(made), "$schema": DIALECT, "title": f"tidemark {command} -o json"}
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _opened(schema: Any) -> Any:
    """Return a schema that allows fields which it does not name."""
    if isinstance(schema, list):
        return [_opened(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _opened(part)
        for key, part in schema.items()
        if not (key == "additionalProperties" and part is False)
    }
