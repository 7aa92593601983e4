"""Kinds of values that a setting may have, and that pydantic does not check to the end.

A refusal never repeats the value: it may be a secret that stands in the wrong place.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_core import PydanticCustomError

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


Seconds = Annotated[float, Field(gt=0, le=3600)]
NamePattern = Annotated[re.Pattern[str], BeforeValidator(_compiled)]
Token = Annotated[SecretStr, AfterValidator(_strong_enough)]
DatabaseUrl = Annotated[SecretStr, AfterValidator(_for_postgresql)]
