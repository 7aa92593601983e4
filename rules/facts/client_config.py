"""A client's settings as a file has them: names, values and lines, not yet judged."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProperty:
    """One setting; the value may be a secret, so that only those of known names are ever shown."""

    name: str
    value: str
    line: int  # of the file, from 1: where it begins


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertiesFile:
    """All settings of one file."""

    source: str  # its name
    properties: tuple[
        ClientProperty, ...
    ]  # in order; of a name that comes twice the last one holds
    problems: tuple[str, ...] = ()  # what could not be read, each a sentence without values
