"""Which endpoints there are: those that are set, and those that files of targets list.

The files are Prometheus' own (`file_sd_configs`), JSON or YAML, so that whatever writes them for
Prometheus serves Tidemark too. A file is read again when it changed. One that is broken keeps what it
last said, and so does one that is named in full and is gone; one that no pattern finds any more is
gone with its targets, as in Prometheus.
Source: prometheus.io/docs/prometheus/latest/configuration/configuration/#file_sd_config.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

from collectors.scrapes.endpoints import BadAddressError, Endpoint, target_of
from rules.facts.gap import GapCause
from rules.facts.scrapes import ScrapeFailure

MAX_FILE_BYTES: Final = 1_048_576  # YAML of that size takes some seconds
MAX_TARGETS: Final = 100_000  # of one file
MAX_REPORTED: Final = 3  # bad targets of one file that are told one by one

Stamp = tuple[int, int, int]  # what changes with a file: inode, size, time


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The endpoints, and what is wrong with the files."""

    endpoints: tuple[Endpoint, ...]
    failures: tuple[ScrapeFailure, ...] = ()
    is_known: bool = True  # False: a file has never been read


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A file as it was read last."""

    stamp: Stamp | None = None
    endpoints: tuple[Endpoint, ...] = ()
    failures: tuple[ScrapeFailure, ...] = ()
    was_read: bool = False


class _BrokenFileError(Exception):
    """A file that cannot be used."""


@dataclass(slots=True)
class EndpointLists:
    """Tells the endpoints, and remembers files from one time to the next."""

    fixed: Sequence[Endpoint]
    patterns: Sequence[str]  # paths, with * and ? as the shell has them
    limit: int  # endpoints
    _files: dict[str, _File] = field(default_factory=dict)

    def unread(self) -> Listed:
        """Return what is known before any file is read, which may take long."""
        kept = list(dict.fromkeys(self.fixed))[: self.limit]
        return Listed(endpoints=tuple(_named_apart(kept)), is_known=False)

    def read(self) -> Listed:
        """Return what is listed now; reads only files that changed."""
        failures: list[ScrapeFailure] = []
        found: list[str] = []
        for pattern in self.patterns:
            paths = _paths(pattern)
            found += paths
            if not paths:
                why = f"{pattern}: no file has this name"
                failures.append(ScrapeFailure(cause=GapCause.GONE, why=why))
        self._files = {path: self._observed_at(path) for path in dict.fromkeys(found)}
        files = self._files.values()
        failures += [failure for one in files for failure in one.failures]
        every = dict.fromkeys(
            [*self.fixed, *(endpoint for file in files for endpoint in file.endpoints)]
        )
        kept = list(every)[: self.limit]
        if len(every) > len(kept):
            why = f"{len(every)} endpoints are listed, and {self.limit} are asked at most"
            failures.append(ScrapeFailure(cause=GapCause.LIMIT, why=why))
        return Listed(
            endpoints=tuple(_named_apart(kept)),
            failures=tuple(failures),
            is_known=all(one.was_read for one in files),
        )

    def _observed_at(self, path: str) -> _File:
        known, stamp = self._files.get(path, _File()), None
        try:
            stamp = _stamp(path)
            if stamp == known.stamp:
                return known
            endpoints, failures = _read(path)
        except OSError as exc:
            why = f"{path}: {(exc.strerror or str(exc)).lower()}"
            return replace(known, stamp=None, failures=(_unreadable(why),))
        except _BrokenFileError as exc:
            return replace(known, stamp=stamp, failures=(_unreadable(f"{path} {exc}"),))
        return _File(stamp=stamp, endpoints=endpoints, failures=failures, was_read=True)


def _paths(pattern: str) -> list[str]:
    """Return the files of a pattern; one without wildcards is itself, whether or not it is there."""
    if not glob.has_magic(pattern):
        return [pattern]
    return sorted(glob.glob(pattern))  # noqa: PTH207 - a Path has no pattern with a folder before it


def _stamp(path: str) -> Stamp:
    told = Path(path).stat()
    return told.st_ino, told.st_size, told.st_mtime_ns


def _unreadable(why: str) -> ScrapeFailure:
    return ScrapeFailure(cause=GapCause.UNREADABLE, why=why)


def _named_apart(endpoints: Sequence[Endpoint]) -> Iterator[Endpoint]:
    """Give names that differ: two pages may differ in their query alone, which is not shown."""
    seen: dict[str, int] = {}
    for endpoint in endpoints:
        seen[endpoint.name] = seen.get(endpoint.name, 0) + 1
        number = seen[endpoint.name]
        yield endpoint if number == 1 else replace(endpoint, name=f"{endpoint.name} ({number})")


# ------------------------------------------------------------------ one file
def _read(path: str) -> tuple[tuple[Endpoint, ...], tuple[ScrapeFailure, ...]]:
    """Return the targets of a file, and those that are none.

    Raises:
        OSError: it cannot be read.
        _BrokenFileError: it is no list of targets.
    """
    if not Path(path).is_file():
        raise _BrokenFileError("is no file")
    with Path(path).open("rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise _BrokenFileError(f"is larger than {MAX_FILE_BYTES} bytes")
    document = _parsed(path, content)
    if not isinstance(document, list):
        raise _BrokenFileError("is no list of targets and labels")
    endpoints: list[Endpoint] = []
    bad: list[str] = []
    for number, (target, labels) in enumerate(_targets(document), start=1):
        try:
            endpoints.append(target_of(target, labels))
        except BadAddressError as exc:
            bad.append(f"target {number} of the file: {exc}")
    failures = [_unreadable(f"{path}: {why}") for why in bad[:MAX_REPORTED]]
    if len(bad) > MAX_REPORTED:
        failures.append(_unreadable(f"{path}: {len(bad) - MAX_REPORTED} more targets are none"))
    return tuple(endpoints), tuple(failures)


def _parsed(path: str, content: bytes) -> Any:
    """Return what a file holds.

    YAML is read in Python, not in C, which ends the process at a list that is nested too deeply.
    """
    try:
        text = content.decode()
        if path.endswith(".json"):
            return json.loads(text)
        if path.endswith((".yml", ".yaml")):
            return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - makes text, lists, tables
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as exc:
        kind = "JSON" if path.endswith(".json") else "YAML"
        raise _BrokenFileError(f"is not {kind} in UTF-8") from exc
    raise _BrokenFileError("is neither .json nor .yml nor .yaml")


def _targets(groups: Sequence[object]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Give every target with its group's labels."""
    count = 0
    for group in groups:
        if not isinstance(group, dict) or not isinstance(group.get("targets"), list):
            raise _BrokenFileError("is no list of targets and labels")
        labels = _labels(group.get("labels"))
        for target in group["targets"]:
            count += 1
            if count > MAX_TARGETS:  # YAML can repeat a long list in a few letters
                raise _BrokenFileError(f"lists more than {MAX_TARGETS} targets")
            if not isinstance(target, str):
                raise _BrokenFileError("has a target that is no text")
            yield target, labels


def _labels(told: object) -> Mapping[str, str]:
    if told is None:
        return {}
    if not isinstance(told, dict) or not all(isinstance(one, str) for one in told.values()):
        raise _BrokenFileError("has labels that are no text")
    return told
