"""Composes the form of a command's JSON document from models that the API and the views declare.

A form is for schemas alone (docs/schemas/): commands print rows as they got them, also those of a Tidemark of
another version. Nothing that a command needs at run time imports this.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from types import GenericAlias, MappingProxyType
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, create_model

from service.api.core.gaps import Gap
from service.api.core.models import Stamped
from service.views.model import Model

Form = Any  # a type that pydantic understands: a model, a list of one, a union

NO_FIELDS: Final[Mapping[str, Form]] = MappingProxyType({})


class _Composed(Model):
    """The base of composed models; searching their docstrings for those of fields would find none, slowly."""

    model_config = ConfigDict(use_attribute_docstrings=False)


class OfServer(Model):
    """A document with what a running Tidemark answered."""

    server: Annotated[str, Field(description="Address of the Tidemark that answered")]


class Reported(OfServer):
    """A list that is complete only if the service observes everything."""

    cluster: str
    as_of: Annotated[str | None, Field(description="When the data was read")]
    complete: Annotated[bool, Field(description="false: there may be more; `errors` has why")]
    errors: list[str]
    gaps: Annotated[list[Gap], Field(description="Of the last round, the first ones")]


def compose(
    title: str,
    /,
    *models: type[BaseModel],
    without: tuple[str, ...] = (),
    optional: tuple[str, ...] = (),
    fields: Mapping[str, Form] = NO_FIELDS,
    **more: Form,
) -> type[Model]:
    """Return the model with the fields of `models` in order, then `fields` and `more` by name and type.

    Fields in `without` are left out; those in `optional` may be absent from a document.
    """
    taken = {
        name: (info.annotation, _absent(info) if name in optional else info)
        for model in models
        for name, info in model.model_fields.items()
        if name not in without
    }
    own = {
        name: (type_, Field(default=None) if name in optional else ...)
        for name, type_ in {**fields, **more}.items()
    }
    parts: dict[str, Any] = taken | own
    made: type[Model] = create_model(title, __base__=_Composed, **parts)
    return made


def list_of(row: Form) -> Form:
    """Return a list as a form; a type checker knows no type of a variable."""
    return GenericAlias(list, (row,))


def picked(model: type[BaseModel], *names: str) -> type[Model]:
    """Return the model with these fields of another alone."""
    others = tuple(name for name in model.model_fields if name not in names)
    return compose(model.__name__, model, without=others)


def listed(rows: str, row: Form, /, **more: Form) -> type[Model]:
    """Return the document of a list of the API: its rows are under the name `rows`."""
    return compose("List", OfServer, Stamped, fields={rows: list_of(row)}, **more)


def reported(rows: str, row: Form, **more: Any) -> type[Model]:
    """Return the document of a report: its rows are under the name `rows`; `more` stands beside them."""
    return compose("Report", Reported, fields={rows: list_of(row), **more})


def _absent(info: Any) -> Any:
    absent = copy(info)
    absent.default = None
    return absent
