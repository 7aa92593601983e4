"""Lists the endpoints: those of the settings, and those of target files.

The files are Prometheus' own (`file_sd_configs`), JSON or YAML, so that whatever writes them for
Prometheus serves Tidemark too. A file is read again when it changed. A broken file keeps its last
targets, and so does a missing one that is named without wildcards; a file that no pattern matches any
more is gone with its targets, as in Prometheus.
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
MAX_REPORTED: Final = 3  # bad targets of one file that are reported one by one

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
    """Lists the endpoints, and remembers the files that did not change."""

    fixed: Sequence[Endpoint]
    patterns: Sequence[str]  # paths, with * and ? as the shell has them
    limit: int  # endpoints
    _files: dict[str, _File] = field(default_factory=dict)

    def unread(self) -> Listed:
        """Return the endpoints that are known before any file is read, which may take long."""
        endpoints = list(dict.fromkeys(self.fixed))[: self.limit]
        return Listed(endpoints=tuple(_named_apart(endpoints)), is_known=False)

    def read(self) -> Listed:
        """Return the present endpoints; read only files that changed."""
        failures: list[ScrapeFailure] = []
        all_paths: list[str] = []
        for pattern in self.patterns:
            paths = _paths(pattern)
            all_paths += paths
            if not paths:
                why = f"{pattern}: no file has this name"
                failures.append(ScrapeFailure(cause=GapCause.GONE, why=why))
        self._files = {path: self._read_if_changed(path) for path in dict.fromkeys(all_paths)}
        files = self._files.values()
        failures += [failure for file in files for failure in file.failures]
        every = dict.fromkeys(
            [*self.fixed, *(endpoint for file in files for endpoint in file.endpoints)]
        )
        endpoints = list(every)[: self.limit]
        if len(every) > len(endpoints):
            why = f"{len(every)} endpoints are listed, and {self.limit} are scraped at most"
            failures.append(ScrapeFailure(cause=GapCause.LIMIT, why=why))
        return Listed(
            endpoints=tuple(_named_apart(endpoints)),
            failures=tuple(failures),
            is_known=all(file.was_read for file in files),
        )

    def _read_if_changed(self, path: str) -> _File:
        file, stamp = self._files.get(path, _File()), None
        try:
            stamp = _stamp(path)
            if stamp == file.stamp:
                return file
            endpoints, failures = _read(path)
        except OSError as exc:
            why = f"{path}: {(exc.strerror or str(exc)).lower()}"
            return replace(file, stamp=None, failures=(_unreadable(why),))
        except _BrokenFileError as exc:
            return replace(file, stamp=stamp, failures=(_unreadable(f"{path} {exc}"),))
        return _File(stamp=stamp, endpoints=endpoints, failures=failures, was_read=True)


def _paths(pattern: str) -> list[str]:
    """Return the files of a pattern; one without wildcards is returned even if the file is missing."""
    if not glob.has_magic(pattern):
        return [pattern]
    return sorted(glob.glob(pattern))  # noqa: PTH207 - a Path has no pattern with a folder before it


def _stamp(path: str) -> Stamp:
    status = Path(path).stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _unreadable(why: str) -> ScrapeFailure:
    return ScrapeFailure(cause=GapCause.UNREADABLE, why=why)


def _named_apart(endpoints: Sequence[Endpoint]) -> Iterator[Endpoint]:
    """Yield the endpoints with distinct names: two pages may differ only in their hidden query."""
    seen: dict[str, int] = {}
    for endpoint in endpoints:
        seen[endpoint.name] = seen.get(endpoint.name, 0) + 1
        number = seen[endpoint.name]
        yield endpoint if number == 1 else replace(endpoint, name=f"{endpoint.name} ({number})")


def _read(path: str) -> tuple[tuple[Endpoint, ...], tuple[ScrapeFailure, ...]]:
    """Return the targets of a file, and a failure for each bad one.

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
    document = _parse(path, content)
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


def _parse(path: str, content: bytes) -> Any:
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
    """Yield every target with its group's labels."""
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


def _labels(labels: object) -> Mapping[str, str]:
    if labels is None:
        return {}
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise _BrokenFileError("has labels that are no text")
    return labels
