"""The lock of Kafka's jars."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rules.errors import SandboxError
from service.sandbox.cluster.jars import (
    AGENT_NAME,
    Jar,
    classpath,
    parse_lock,
    read_lock,
    render_lock,
)
from service.sandbox.cluster.releases import Release, supported

FOLDER = Path("/jars")
JARS = (
    Jar(organisation="org.a", name="one", revision="1.0", sha256="ab"),
    Jar(organisation="org.b", name="two", revision="2.0", sha256="cd"),
)


def test_the_lock_reads_back_what_was_written() -> None:
    assert parse_lock(render_lock(JARS)) == JARS


def test_the_lock_is_sorted_whatever_the_order_of_the_jars() -> None:
    assert render_lock(reversed(JARS)) == render_lock(JARS)


def test_comments_and_empty_lines_are_skipped() -> None:
    assert parse_lock("# a comment\n\norg.a one 1.0 ab\n") == JARS[:1]


def test_a_line_with_a_missing_field_is_rejected() -> None:
    with pytest.raises(SandboxError, match="four fields"):
        parse_lock("org.a one 1.0\n")


def kafka(name: str, revision: str) -> Jar:
    return Jar(organisation="org.apache.kafka", name=name, revision=revision, sha256="ef")


def test_kafkas_jars_of_another_revision_come_last_and_the_agent_not_at_all() -> None:
    agent = Jar(organisation="io.p", name=AGENT_NAME, revision="1.0", sha256="ab")
    pinned = (agent, JARS[0], kafka("clients", "4.3"), kafka("clients", "4.4"), JARS[1])
    of_tools = ["one-1.0", "clients-4.3", "two-2.0", "clients-4.4"]
    of_brokers = ["one-1.0", "clients-4.4", "two-2.0", "clients-4.3"]
    for revision, names in (("4.3", of_tools), ("4.4", of_brokers)):
        expected = ":".join(f"/jars/{name}.jar" for name in names)
        assert classpath(FOLDER, pinned, revision) == expected


@pytest.mark.parametrize("version", supported())
def test_a_lock_pins_every_jar_by_a_whole_hash_and_is_as_we_write_it(version: str) -> None:
    file = Release(version).lock_file
    listed = read_lock(file)
    assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in listed)
    assert file.read_text(encoding="utf-8") == render_lock(listed)


@pytest.mark.parametrize("version", supported())
def test_a_lock_has_what_a_sandbox_starts(version: str) -> None:
    listed = {(jar.name, jar.revision) for jar in read_lock(Release(version).lock_file)}
    assert {("kafka_2.13", version), ("kafka-clients", version)} <= listed
    assert {AGENT_NAME, "kafka-tools"} <= {name for name, _ in listed}
