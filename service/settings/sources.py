"""Settings are read once at start from a TOML file, the environment and flags, then frozen.

A later source wins: defaults, `tidemark.toml`, environment, command-line flags. The environment is
written TIDEMARK_<GROUP>__<KEY>; with `_FILE` behind it the value is read from that file, which is
how secrets arrive. Unknown keys are rejected, wherever they are.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from rules.errors import SettingsError
from service.runtime.secret_files import secret_from
from service.settings.groups import Settings

PREFIX: Final = "TIDEMARK_"
FILE_SUFFIX: Final = "_FILE"
# Whom commands ask: no matter of the service.
NOT_SETTINGS: Final = frozenset(
    {"TIDEMARK_CONTEXT", "TIDEMARK_SERVER", "TIDEMARK_PROMETHEUS_TOKEN_FILE"}
)

Tables = dict[str, Any]  # group -> key -> value, as a source gives them: nothing is checked yet


class Source(StrEnum):
    """The source of a value; a later one wins."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sourced:
    """Settings, and the sources of those that are not defaults."""

    settings: Settings
    origins: Mapping[tuple[str, str], Source]  # (group, key) -> the source that won

    def source_of(self, group: str, key: str) -> Source:
        """Return the source of a value."""
        return self.origins.get((group, key), Source.DEFAULT)


def read_settings(
    environment: Mapping[str, str],
    *,
    path: Path | None = None,
    flags: Mapping[str, Mapping[str, object]] | None = None,
) -> Settings:
    """Merge the sources and check every value.

    Args:
        environment: the process's environment.
        path: a TOML file with one table per group, or None.
        flags: group -> key -> value of the flags that were given; None values count as not given.

    Raises:
        SettingsError: naming each key that is unknown or has a value that cannot be used.
    """
    return read_sourced(environment, path=path, flags=flags).settings


def read_sourced(
    environment: Mapping[str, str],
    *,
    path: Path | None = None,
    flags: Mapping[str, Mapping[str, object]] | None = None,
) -> Sourced:
    """Read as `read_settings` does, and keep the source of each value."""
    problems: list[str] = []
    sources: list[tuple[Source, Mapping[str, Any]]] = [
        (Source.DEFAULT, _state_folder(environment)),
        (Source.FILE, {} if path is None else _from_file(path)),
        (Source.ENVIRONMENT, _from_environment(environment, problems)),
        (Source.FLAG, _from_flags(flags or {})),
    ]
    merged: Tables = {}
    origins: dict[tuple[str, str], Source] = {}
    for source, tables in sources:
        _merge(merged, tables)
        origins |= dict.fromkeys(_keys(tables), source)
    settings = _check(merged, origins, path, problems)
    return Sourced(settings=settings, origins=origins)


def absolute_files(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that name files of values, for a process in another working directory."""
    return {
        name: str(Path(value).absolute())
        for name, value in environment.items()
        if name.startswith(PREFIX) and name.endswith(FILE_SUFFIX)
    }


def variable(group: str, key: str) -> str:
    """Return the name that a setting has in the environment."""
    return f"{PREFIX}{group}__{key}".upper()


def _state_folder(environment: Mapping[str, str]) -> Tables:
    """Return the one default that depends on the user, by the XDG convention."""
    folder = environment.get("XDG_STATE_HOME", "")
    is_valid = Path(folder).is_absolute()  # by the convention any other is ignored
    return {"service": {"data_dir": f"{folder}/tidemark"}} if is_valid else {}


def _from_file(path: Path) -> Tables:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise SettingsError(f"settings file {path}: {(exc.strerror or str(exc)).lower()}") from exc
    except UnicodeDecodeError as exc:
        problem = f"not UTF-8 {_place(exc.object, exc.start)}"
        raise SettingsError(f"settings file {path} is not TOML: {problem}") from exc
    except ValueError as exc:  # a number of too many digits is not a TOMLDecodeError
        raise SettingsError(f"settings file {path} is not TOML: {exc}") from exc
    except RecursionError as exc:
        raise SettingsError(f"settings file {path} is nested too deeply") from exc


def _place(content: bytes, at: int) -> str:
    """Name line and column as tomllib does."""
    lines = content[:at].split(b"\n")
    return f"(at line {len(lines)}, column {len(lines[-1]) + 1})"


def _from_environment(environment: Mapping[str, str], problems: list[str]) -> Tables:
    values: Tables = {}
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name in NOT_SETTINGS:
            continue
        group, separator, key = name.removeprefix(PREFIX).partition("__")
        if not separator or not key:
            problems.append(f"unknown setting {name}: write {PREFIX}<GROUP>__<KEY>")
            continue
        if f"{name}{FILE_SUFFIX}" in environment:
            problems.append(f"both {name} and {name}{FILE_SUFFIX} are set: keep one of them")
            continue
        value = environment[name]
        try:
            if name.endswith(FILE_SUFFIX):
                value = secret_from(name, Path(value))
        except SettingsError as exc:
            problems.append(str(exc))
            continue
        values.setdefault(group.lower(), {})[key.removesuffix(FILE_SUFFIX).lower()] = value
    return values


def _from_flags(flags: Mapping[str, Mapping[str, object]]) -> Tables:
    return {
        group: {key: value for key, value in values.items() if value is not None}
        for group, values in flags.items()
    }


def _merge(into: Tables, new: Mapping[str, Any], path: str = "") -> None:
    for key, value in new.items():
        place, is_table = f"{path}{key}", isinstance(value, Mapping)
        if key in into and is_table != isinstance(into[key], dict):
            # The winner would silently hide a mistake in another source.
            expected, actual = ("a table", "one value") if is_table else ("one value", "a table")
            raise SettingsError(f"{place}: {expected} is expected, and a source gives {actual}")
        if is_table:
            _merge(into.setdefault(key, {}), value, f"{place}.")
        else:
            into[key] = value


def _keys(tables: Mapping[str, Any]) -> list[tuple[str, str]]:
    groups = [(group, keys) for group, keys in tables.items() if isinstance(keys, Mapping)]
    return [(group, key) for group, keys in groups for key in keys]


def _keys_beside(groups: Sequence[str]) -> list[str]:
    """Return the keys of a group, or the groups; of what is nested deeper nothing is suggested."""
    if not groups:
        return list(Settings.model_fields)
    return list(type(getattr(Settings(), groups[0])).model_fields) if len(groups) == 1 else []


def _check(
    merged: Tables,
    origins: Mapping[tuple[str, str], Source],
    path: Path | None,
    problems: Sequence[str],
) -> Settings:
    """Build the settings, or raise all problems of all sources."""
    errors: list[str] = []
    try:
        settings = Settings.model_validate(merged)
    except ValidationError as exc:
        errors += [
            f"{_describe_error(error)}{_where(error, origins, path)}" for error in exc.errors()
        ]
    else:
        if not problems:
            return settings
    raise SettingsError("; ".join([*problems, *errors])) from None


def _where(error: Any, origins: Mapping[tuple[str, str], Source], path: Path | None) -> str:
    """Say where a key comes from: of the environment only if it is unknown there."""
    group, key = (*map(str, error["loc"]), "")[:2]
    of_group = (source for (name, _), source in origins.items() if name == group)
    source = origins.get((group, key)) if key else next(of_group, None)
    if source is Source.ENVIRONMENT and error["type"] == "extra_forbidden":
        return f" ({variable(group, key or '*')})"
    return f" (in {path})" if source is Source.FILE else ""


def _describe_error(error: Any) -> str:
    *groups, name = map(str, error["loc"])
    key = ".".join([*groups, name])
    if error["type"] == "extra_forbidden":
        nearest = difflib.get_close_matches(name, _keys_beside(groups), n=1)
        meant = f": did you mean {'.'.join([*groups, *nearest])}?" if nearest else ""
        return f"unknown setting {key}{meant}"
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{key}: {message[:1].lower()}{message[1:]}"  # never the value: it may be a secret
