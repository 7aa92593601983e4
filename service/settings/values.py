"""Kinds of values that a setting may have, and that pydantic does not check to the end.

A rejection never repeats the value: it may be a secret that is in the wrong place.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_core import PydanticCustomError

from collectors.broker_log.zones import zone_of

LEAST_TOKEN: Final = 16  # characters; 16 random ones of base 64 hold 96 bits
URL_BEGINNINGS: Final = ("postgresql://", "postgres://", "postgresql+psycopg://")


def _compiled(value: object) -> object:
    """Compile the text of an expression; anything else is left to pydantic."""
    if not isinstance(value, str):
        return value
    if not value:
        raise PydanticCustomError("pattern", "an empty regular expression matches no name")
    try:
        return re.compile(value)
    except (re.error, OverflowError) as exc:
        told = {"why": str(exc)}
        raise PydanticCustomError("pattern", "not a regular expression: {why}", told) from exc
    except RecursionError as exc:
        raise PydanticCustomError("pattern", "the expression is nested too deeply") from exc


def _strong_enough(token: SecretStr) -> SecretStr:
    text = token.get_secret_value()
    if len(text) < LEAST_TOKEN:
        told = {"least": LEAST_TOKEN}
        raise PydanticCustomError("token", "a token has at least {least} characters", told)
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise PydanticCustomError("token", "a token is printable ASCII without spaces")
    return token


def _for_postgresql(url: SecretStr) -> SecretStr:
    if not url.get_secret_value().startswith(URL_BEGINNINGS):
        raise PydanticCustomError("url", "write postgresql://user:password@host/name")
    return url


def tables(value: object) -> object:
    """Read a list of tables that the environment gives as JSON; a file gives one already."""
    try:
        read = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError) as exc:
        raise PydanticCustomError("tables", "not a list of tables in JSON") from exc
    if not isinstance(read, list | tuple):
        raise PydanticCustomError("tables", "not a list of tables")
    return read


def _file_pattern(text: str) -> str:
    if not text.startswith("/") or "\0" in text:
        raise PydanticCustomError("path", "write an absolute path like /var/log/kafka/*.log")
    if text.endswith("/"):
        raise PydanticCustomError("path", "this is a folder: write /folder/*.log")
    return text


def _known_zone(text: str) -> str:
    try:
        zone_of(text)
    except ValueError as exc:
        raise PydanticCustomError("zone", "{why}", {"why": str(exc)}) from exc
    return text


Seconds = Annotated[float, Field(gt=0, le=3600)]
NamePattern = Annotated[re.Pattern[str], BeforeValidator(_compiled)]
Token = Annotated[SecretStr, AfterValidator(_strong_enough)]
FilePattern = Annotated[str, AfterValidator(_file_pattern)]
ZoneName = Annotated[str, AfterValidator(_known_zone)]
DatabaseUrl = Annotated[SecretStr, AfterValidator(_for_postgresql)]
