"""Under which name a release has the class of a tool.

Most tools moved from Kafka's Scala core to kafka-tools between 3.3 and 4.3, one after the other. The
jars themselves say where a class is, so that no table of moves has to be kept. kafka-tools may be of
another release than the brokers where theirs has not been published.
"""

from __future__ import annotations

import functools
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rules.errors import SandboxError
from service.sandbox.cluster.jars import Jar

PACKAGES = ("org.apache.kafka.tools", "kafka.admin", "kafka.tools")  # the newest first
HOLDERS = ("kafka_2.13", "kafka-tools")  # the jars that have a tool


@dataclass(frozen=True, slots=True)
class ToolClass:
    """The class of a tool, and the revision of Kafka that it belongs to."""

    name: str
    revision: str


def find_class(folder: Path, jars: Iterable[Jar], main_class: str, version: str) -> ToolClass:
    """Return the class that these jars have for a tool, or raise when they have none.

    `main_class` is its name in some release, `version` that of the brokers, whose own classes come
    first.
    """
    holders = [jar for jar in jars if jar.name in HOLDERS]
    holders.sort(key=lambda jar: jar.revision != version)
    simple = main_class.rpartition(".")[2]
    for name in (main_class, *(f"{package}.{simple}" for package in PACKAGES)):
        for jar in holders:
            if name in _classes(folder / jar.file_name):
                return ToolClass(name, jar.revision)
    raise SandboxError(f"this Kafka has no tool {simple}: it came with a later release")


@functools.cache
def _classes(jar: Path) -> frozenset[str]:
    with zipfile.ZipFile(jar) as content:
        return frozenset(
            name.removesuffix(".class").replace("/", ".")
            for name in content.namelist()
            if name.endswith(".class") and "$" not in name
        )
