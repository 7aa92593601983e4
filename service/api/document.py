"""The OpenAPI document of the API; a test keeps docs/openapi.json equal to it.

It does not depend on the configuration, so every Tidemark of a version serves the same document.
"""

from __future__ import annotations

import json
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from rules.version import VERSION
from service.api.core.access import right_for
from service.api.core.models import FieldProblem, Problem
from service.api.core.problems import MEDIA_TYPE

REFERENCE: Final = "#/components/schemas/{model}"
DESCRIPTION: Final = """\
What Tidemark last observed of a Kafka cluster, what it concluded, and who is notified. No request
queries Kafka.

Absent values are null. Lists come in pages: `next`, also as a `Link` header, goes on after the last
item, whatever changed in the cluster meanwhile. Unknown parameters are rejected. A POST may have
an Idempotency-Key. Each operation names the scope that its token needs.
"""
PROBLEM: Final[dict[int | str, dict[str, Any]]] = {
    "default": {
        "description": "An error (RFC 9457)",
        "content": {MEDIA_TYPE: {"schema": {"$ref": REFERENCE.format(model="Problem")}}},
    }
}


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """Return the document of the routes that an application has."""
    document = get_openapi(
        title="Tidemark", version=VERSION, description=DESCRIPTION, routes=app.routes
    )
    components = document["components"]
    for model in (FieldProblem, Problem):
        schema = model.model_json_schema(ref_template=REFERENCE)
        schema.pop("$defs", None)
        components["schemas"][model.__name__] = schema
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            scope = right_for(method.upper(), path).value
            # On the loopback interface no token is needed.
            operation["security"] = [{}, {"token": [scope]}]
    return document


def openapi_page(app: FastAPI) -> str:
    """Return the document as the text that is committed, keys sorted."""
    document = openapi_document(app)
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
