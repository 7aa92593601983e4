"""Every setting as a row: for the page of settings, the example file and `tidemark config check`.

Rows are made from the groups themselves, so that a new setting is in all three at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import NoneType
from typing import Annotated, Any, Final, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from service.settings.groups import Settings
from service.settings.sources import Sourced, variable
from service.settings.values import Group

HIDDEN: Final = "***"
KINDS: Final[dict[Any, str]] = {
    bool: "true or false",
    SecretStr: "secret",
    re.Pattern: "regular expression",
}
UNITS: Final = {"_seconds": "seconds", "_days": "days", "_rounds": "rounds"}

Single = str | int | float | bool | None
Plain = Single | list[dict[str, Single]]  # a value as TOML and JSON write it


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One setting as it is documented."""

    group: str
    key: str
    kind: str  # type, unit and bounds, for a person
    default: Plain
    example: Plain  # a value that can be used; the default where there is one
    meaning: str  # one paragraph
    is_secret: bool

    @property
    def variable(self) -> str:
        """Return the name in the environment; that of a secret names a file."""
        return variable(self.group, self.key) + ("_FILE" if self.is_secret else "")


def entries() -> list[Entry]:
    """Return every setting, in the order of the groups."""
    return [
        _entry(group, key, info)
        for group, members in groups().items()
        for key, info in members.model_fields.items()
    ]


def groups() -> dict[str, type[Group]]:
    """Return the groups by their name."""
    return {name: type(getattr(Settings(), name)) for name in Settings.model_fields}


def effective(sourced: Sourced) -> Iterator[tuple[str, Plain, str]]:
    """Yield key, value and source of every setting; a secret's value is hidden."""
    for entry in entries():
        value = getattr(getattr(sourced.settings, entry.group), entry.key)
        source = sourced.source_of(entry.group, entry.key)
        yield f"{entry.group}.{entry.key}", _plain(value), source.value


def written(value: Plain) -> str:
    """Return a value as TOML writes it; JSON's strings, numbers and booleans are TOML's too."""
    if isinstance(value, list):
        return f"[{', '.join(map(_inline_table, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _inline_table(table: Mapping[str, Single]) -> str:
    pairs = (f"{key} = {written(value)}" for key, value in table.items())
    return f"{{ {', '.join(pairs)} }}"


def _entry(group: str, key: str, info: FieldInfo) -> Entry:
    bare, bounds = _unwrap(info.annotation, info.metadata)
    default = _plain(info.default)
    return Entry(
        group=group,
        key=key,
        kind=_kind(key, bare, bounds),
        default=default,
        example=(info.examples or [default])[0],
        meaning=" ".join((info.description or "").split()),
        is_secret=bare is SecretStr,
    )


def _plain(value: object) -> Plain:
    if isinstance(value, tuple):
        return [_table(table) for table in value]
    return _single(value)


def _table(value: Group) -> dict[str, Single]:
    """Return the keys of a table that are set; TOML cannot write absent ones."""
    members = type(value).model_fields.items()
    pairs = ((info.alias or key, _single(getattr(value, key))) for key, info in members)
    return {key: plain for key, plain in pairs if plain is not None}


def _single(value: object) -> Single:
    match value:
        case SecretStr():
            return HIDDEN
        case re.Pattern():
            return str(value.pattern)
        case StrEnum():
            return value.value
        case None | str() | int() | float():
            return value
        case _:
            raise TypeError(f"a setting of type {type(value).__name__} cannot be written")


def _unwrap(annotation: Any, metadata: list[Any]) -> tuple[Any, list[Any]]:
    """Return the type without None and Annotated, and the metadata of the latter."""
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return _unwrap(inner, [*metadata, *more])
    members = [member for member in get_args(annotation) if member is not NoneType]
    is_optional = NoneType in get_args(annotation)
    return _unwrap(members[0], metadata) if is_optional else (annotation, metadata)


def _kind(key: str, bare: Any, metadata: list[Any]) -> str:
    kind = KINDS.get(get_origin(bare) or bare)
    if kind is not None:
        return kind
    if get_origin(bare) is tuple:
        fields: dict[str, FieldInfo] = get_args(bare)[0].model_fields
        return f"list of tables: {', '.join(info.alias or key for key, info in fields.items())}"
    if bare in (int, float):
        unit = next((unit for end, unit in UNITS.items() if key.endswith(end)), "number")
        return f"{unit}, {_bounds(metadata)}"
    if issubclass(bare, StrEnum):
        return "one of " + ", ".join(member.value for member in bare)
    return "text"


def _bounds(metadata: list[Any]) -> str:
    bounds = []
    for bound in metadata:
        match bound:
            case Gt():
                bounds.append(f"above {bound.gt}")
            case Ge():
                bounds.append(f"{bound.ge} or more")
            case Le():
                bounds.append(f"at most {bound.le}")
    return ", ".join(bounds)
