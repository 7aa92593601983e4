"""Where the class of a tool is."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from rules.errors import SandboxError
from service.sandbox.cluster.commands import ToolClass, find_class
from service.sandbox.cluster.jars import Jar

TOPICS = "org.apache.kafka.tools.TopicCommand"


def jar(folder: Path, name: str, revision: str, *classes: str) -> Jar:
    pinned = Jar(organisation="org.apache.kafka", name=name, revision=revision, sha256="")
    with zipfile.ZipFile(folder / pinned.file_name, "w") as content:
        for class_name in classes:
            content.writestr(f"{class_name.replace('.', '/')}.class", b"")
    return pinned


@pytest.mark.parametrize(
    ("core", "tools", "expected"),
    [
        pytest.param([], [TOPICS], ToolClass(TOPICS, "3.1"), id="where it is today"),
        pytest.param(
            ["kafka.admin.TopicCommand"],
            [],
            ToolClass("kafka.admin.TopicCommand", "3.2"),
            id="in the core, as of old",
        ),
        pytest.param(
            ["kafka.tools.TopicCommand"],
            [f"{TOPICS}$"],
            ToolClass("kafka.tools.TopicCommand", "3.2"),
            id="beside an inner class",
        ),
        pytest.param(
            ["kafka.admin.TopicCommand"],
            [TOPICS],
            ToolClass(TOPICS, "3.1"),
            id="the newer of two",
        ),
    ],
)
def test_a_tool_is_found_where_a_release_has_it(
    tmp_path: Path, core: list[str], tools: list[str], expected: ToolClass
) -> None:
    jars = [
        jar(tmp_path, "kafka_2.13", "3.2", *core),
        jar(tmp_path, "kafka-tools", "3.1", *tools),
    ]
    assert find_class(tmp_path, jars, TOPICS, "3.2") == expected


def test_a_tool_that_came_later_is_rejected(tmp_path: Path) -> None:
    jars = [jar(tmp_path, "kafka_2.13", "3.2"), jar(tmp_path, "kafka-tools", "3.2")]
    with pytest.raises(SandboxError, match="no tool TopicCommand: it came with a later release"):
        find_class(tmp_path, jars, TOPICS, "3.2")


def test_the_brokers_own_class_comes_before_one_of_another_release(tmp_path: Path) -> None:
    name = "kafka.tools.StorageTool"
    jars = [jar(tmp_path, "kafka_2.13", revision, name) for revision in ("3.1", "3.2")]
    assert find_class(tmp_path, jars, name, "3.2") == ToolClass(name, "3.2")


def test_a_tool_that_has_moved_since_is_found_by_its_old_name(tmp_path: Path) -> None:
    moved = "org.apache.kafka.tools.DumpLogSegments"
    jars = [jar(tmp_path, "kafka_2.13", "3.2"), jar(tmp_path, "kafka-tools", "3.2", moved)]
    tool = find_class(tmp_path, jars, "kafka.tools.DumpLogSegments", "3.2")
    assert tool == ToolClass(moved, "3.2")
