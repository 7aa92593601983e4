"""Writes docs/api.md, the HTTP API as a page, from the OpenAPI document that is served.

An operation has its path, the scope that its token needs, its parameters and what it answers; a model its
fields. `docs/openapi.json` has the same for programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from service.api.document import DESCRIPTION

Json = Mapping[str, Any]

METHODS: Final = ("get", "post", "put", "delete")
INTRODUCTION: Final = f"""\
# HTTP API

Generated from the routes by `make golden`; a test compares. [openapi.json](openapi.json) has the same for programs, and a running
service serves it at `/api/v1/openapi.json`.

{DESCRIPTION}
On the loopback interface no token is needed ([who may do what](permissions.md#over-http)). Errors are `application/problem+json`
(RFC 9457, [`Problem`](#problem)). `/metrics` is on the page [metrics](metrics.md), `/livez` and `/readyz` on
[running the service](serve.md).

| operation | scope | what it does |
|---|---|---|
"""


def api_page(document: Json) -> str:
    """Return the page of an OpenAPI document: a table of all operations, then each, then the models."""
    operations = list(_operations(document))
    index = "".join(_index_row(*operation) for operation in operations)
    details = "\n".join(_operation(*operation) for operation in operations)
    models = document["components"]["schemas"]
    fields = "\n".join(_model(name, models[name]) for name in sorted(models))
    return f"{INTRODUCTION}{index}\n## Operations\n\n{details}\n## Models\n\n{fields}"


def _operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    for path, by_method in sorted(document["paths"].items()):
        for method in METHODS:
            if method in by_method:
                yield method.upper(), path, by_method[method]


def _index_row(method: str, path: str, operation: Json) -> str:
    link = f"[`{method} {path}`](#{operation['operationId']})"
    return f"| {link} | {_scope(operation)} | {_sentence(operation)} |\n"


def _operation(method: str, path: str, operation: Json) -> str:
    parts = [
        f"### {operation['operationId']}\n",
        f"`{method} {path}`, scope `{_scope(operation)}`. {operation.get('description', '')}\n",
    ]
    rows = [_parameter(parameter) for parameter in operation.get("parameters", ())]
    if rows:
        parts.append("| parameter | in | type | meaning |\n|---|---|---|---|\n" + "".join(rows))
    body = operation.get("requestBody")
    if body is not None:
        parts.append(f"Body: {_contents(body)}.\n")
    answers = operation["responses"].items()
    parts += [
        f"Answers {status}{_of(answer)}.\n" for status, answer in answers if status != "default"
    ]
    return "\n".join(parts)


def _parameter(parameter: Json) -> str:
    schema = parameter["schema"]
    default = f"; default `{schema['default']}`" if schema.get("default") is not None else ""
    needed = ", needed" if parameter.get("required") else ""
    meaning = _cell(parameter.get("description", ""))
    kind = f"{_type(schema)}{needed}{default}"
    return f"| `{parameter['name']}` | {parameter['in']} | {kind} | {meaning} |\n"


def _model(name: str, schema: Json) -> str:
    text = schema.get("description", "")
    head = f"### {name}\n" + (f"\n{text}\n" if text else "")
    if "enum" in schema:
        return f"{head}\nOne of {', '.join(f'`{value}`' for value in schema['enum'])}.\n"
    rows = [
        f"| `{field}` | {_type(value)} | {_cell(value.get('description', ''))} |\n"
        for field, value in schema.get("properties", {}).items()
    ]
    return f"{head}\n| field | type | meaning |\n|---|---|---|\n{''.join(rows)}"


def _of(answer: Json) -> str:
    return f": {_contents(answer)}" if answer.get("content") else ", without a body"


def _contents(holder: Json) -> str:
    return ", ".join(
        f"{_type(content.get('schema', {}))} as `{media}`"
        for media, content in holder["content"].items()
    )


def _type(schema: Json) -> str:
    """Return the type of a schema in words, with links to models and `or null` where it may be absent."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(choice) for choice in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type", "any value")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    values = schema.get("additionalProperties")
    if kind == "object" and isinstance(values, Mapping):
        return f"object of {_type(values)}"
    return schema.get("format", kind) if kind == "string" else str(kind)


def _scope(operation: Json) -> str:
    return ", ".join(scope for each in operation["security"] for scope in each.get("token", ()))


def _sentence(operation: Json) -> str:
    text: str = _cell(operation.get("description", "")).split("\n\n")[0]
    return text.replace("\n", " ").partition(". ")[0].removesuffix(".") + "."


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
