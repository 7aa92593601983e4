"""The base of every group of settings, and types with checks that pydantic does not have.

An error never repeats the value: it may be a secret in the wrong place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Annotated, Final, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from collectors.broker_log.wording.times import zone_of
from rules.errors import TidemarkError

LEAST_TOKEN: Final = 16  # characters; 16 random ones of base 64 hold 96 bits
URL_BEGINNINGS: Final = ("postgresql://", "postgres://", "postgresql+psycopg://")


class Group(BaseModel):
    """A group of settings: frozen, and with unknown keys rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def parted(text: str) -> list[str]:
    """Return the parts of a comma-separated list."""
    return [part.strip() for part in text.split(",") if part.strip()]


def read_by(read: Callable[[str], object]) -> AfterValidator:
    """Return a check that accepts the texts that `read` does."""

    def check(text: str) -> str:
        try:
            read(text)
        except TidemarkError as exc:
            raise ValueError(str(exc)) from exc
        return text

    return AfterValidator(check)


def in_form(form: str, advice: str) -> AfterValidator:
    """Return a check that accepts the texts that a regular expression matches as a whole."""
    pattern = re.compile(form)

    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(advice)
        return text

    return AfterValidator(check)


def _compile(value: object) -> object:
    """Compile a regular expression; anything but text is left to pydantic."""
    if not isinstance(value, str):
        return value
    if not value:
        raise ValueError("an empty regular expression matches no name")
    try:
        return re.compile(value)
    except (re.error, OverflowError) as exc:
        raise ValueError(f"not a regular expression: {exc}") from exc
    except RecursionError as exc:
        raise ValueError("the expression is nested too deeply") from exc


def check_pattern(text: str) -> str:
    """Return a text that is a regular expression.

    Raises:
        ValueError: it is none, or matches no name.
    """
    _compile(text)
    return text


def _check_sendable(token: SecretStr) -> SecretStr:
    text = token.get_secret_value()
    if not text or not (text.isascii() and text.isprintable()) or " " in text:
        raise ValueError("a token is printable ASCII without spaces")
    return token


def _check_strength(token: SecretStr) -> SecretStr:
    if len(token.get_secret_value()) < LEAST_TOKEN:
        raise ValueError(f"a token has at least {LEAST_TOKEN} characters")
    return _check_sendable(token)


def _check_url(url: SecretStr) -> SecretStr:
    if not url.get_secret_value().startswith(URL_BEGINNINGS):
        raise ValueError("write postgresql://user:password@host/name")
    return url


def _read_tables(value: object) -> object:
    """Read a list of tables that the environment gives as JSON; a file gives one already."""
    try:
        read = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError) as exc:
        raise ValueError("not a list of tables in JSON") from exc
    if not isinstance(read, list | tuple):
        raise ValueError("not a list of tables")  # noqa: TRY004 - pydantic takes no TypeError
    return read


def _check_file_pattern(text: str) -> str:
    if not text.startswith("/") or "\0" in text:
        raise ValueError("write an absolute path like /var/log/kafka/*.log")
    if text.endswith("/"):
        raise ValueError("this is a folder: write /folder/*.log")
    return text


TableT = TypeVar("TableT", bound=Group)
Tables = Annotated[tuple[TableT, ...], BeforeValidator(_read_tables)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
NamePattern = Annotated[re.Pattern[str], BeforeValidator(_compile)]
SentToken = Annotated[SecretStr, AfterValidator(_check_sendable)]
Token = Annotated[SecretStr, AfterValidator(_check_strength)]
FilePattern = Annotated[str, AfterValidator(_check_file_pattern)]
ZoneName = Annotated[str, read_by(zone_of)]
DatabaseUrl = Annotated[SecretStr, AfterValidator(_check_url)]
