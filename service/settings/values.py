"""Types of settings with checks that pydantic does not have.

An error never repeats the value: it may be a secret in the wrong place.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_core import PydanticCustomError

from collectors.broker_log.wording.times import zone_of

LEAST_TOKEN: Final = 16  # characters; 16 random ones of base 64 hold 96 bits
URL_BEGINNINGS: Final = ("postgresql://", "postgres://", "postgresql+psycopg://")


def _compile(value: object) -> object:
    """Compile a regular expression; anything but text is left to pydantic."""
    if not isinstance(value, str):
        return value
    if not value:
        raise PydanticCustomError("pattern", "an empty regular expression matches no name")
    try:
        return re.compile(value)
    except (re.error, OverflowError) as exc:
        context = {"why": str(exc)}
        raise PydanticCustomError("pattern", "not a regular expression: {why}", context) from exc
    except RecursionError as exc:
        raise PydanticCustomError("pattern", "the expression is nested too deeply") from exc


def _check_strength(token: SecretStr) -> SecretStr:
    text = token.get_secret_value()
    if len(text) < LEAST_TOKEN:
        context = {"least": LEAST_TOKEN}
        raise PydanticCustomError("token", "a token has at least {least} characters", context)
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


def _check_zone(text: str) -> str:
    try:
        zone_of(text)
    except ValueError as exc:
        raise PydanticCustomError("zone", "{why}", {"why": str(exc)}) from exc
    return text


Seconds = Annotated[float, Field(gt=0, le=3600)]
NamePattern = Annotated[re.Pattern[str], BeforeValidator(_compile)]
Token = Annotated[SecretStr, AfterValidator(_check_strength)]
FilePattern = Annotated[str, AfterValidator(_file_pattern)]
ZoneName = Annotated[str, AfterValidator(_check_zone)]
DatabaseUrl = Annotated[SecretStr, AfterValidator(_for_postgresql)]
