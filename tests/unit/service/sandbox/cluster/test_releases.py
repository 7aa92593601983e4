"""What differs between the Kafka releases that the sandbox runs."""

from __future__ import annotations

import pytest

from rules.errors import SandboxError
from service.sandbox.cluster.releases import (
    DEFAULT_VERSION,
    LOCKS,
    Release,
    find_release,
    supported,
)
from service.sandbox.cluster.state import SandboxOptions
from service.sandbox.commands.sandbox import up


def test_the_oldest_comes_first_and_the_default_is_among_them() -> None:
    assert supported() == ("3.3.2", "3.9.2", "4.1.1", "4.4.0")
    assert DEFAULT_VERSION == "4.1.1"


def test_the_command_starts_the_default_release() -> None:
    [option] = [param for param in up.params if param.name == "kafka_version"]
    assert option.default == DEFAULT_VERSION


@pytest.mark.parametrize("version", ["3.8.0", "4.1", "", "../kafka-4.1.1"])
def test_an_unknown_release_is_rejected_with_those_that_there_are(version: str) -> None:
    with pytest.raises(SandboxError, match=r"it has 3\.3\.2, 3\.9\.2, 4\.1\.1, 4\.4\.0"):
        find_release(version)
    with pytest.raises(SandboxError, match="the sandbox has no Kafka"):
        SandboxOptions(kafka_version=version)


@pytest.mark.parametrize(
    ("version", "log_settings"),
    [
        ("3.3.2", "-Dlog4j.configuration=file://"),
        ("3.9.2", "-Dlog4j.configuration=file://"),
        ("4.1.1", "-Dlog4j2.configurationFile=/"),
        ("4.4.0", "-Dlog4j2.configurationFile=/"),
    ],
)
def test_a_release_is_given_the_settings_of_the_log4j_that_it_has(
    version: str, log_settings: str
) -> None:
    flag = Release(version).log_flag
    assert flag.startswith(log_settings)
    named = LOCKS.parent / flag.rpartition("/")[2]
    assert named.is_file()


@pytest.mark.parametrize(
    ("has", "lack_it"),
    [
        ("has_scram_users", ["3.3.2"]),
        ("elects_unclean", ["3.3.2"]),
        ("verifies_transactions", ["3.3.2"]),
        ("has_transactions_v2", ["3.3.2", "3.9.2"]),
        ("terminates_by_name", ["3.3.2", "3.9.2"]),
    ],
)
def test_a_release_has_what_came_before_it(has: str, lack_it: list[str]) -> None:
    assert [version for version in supported() if not getattr(Release(version), has)] == lack_it


def test_share_groups_are_asked_for_where_a_new_cluster_leaves_them_off() -> None:
    assert [version for version in supported() if Release(version).features] == ["4.1.1"]
