"""The commands that grant a permission, letter by letter."""

from __future__ import annotations

import shlex

import pytest

from collectors.name_scope import NameScope, PatternType
from rules.facts.permissions import NEEDED
from service.cli.doctor.acls import acl_of, principal_of, script, with_type
from service.cli.main import run
from service.settings import KafkaSettings

SERVERS = "broker-1:9092,broker-2:9092"
BY_KEY = {needed.key: needed for needed in NEEDED}
EVERY = NameScope()
BEGINNING = f"kafka-acls.sh --bootstrap-server {SERVERS} --add --allow-principal User:x --operation"


@pytest.mark.parametrize(
    ("key", "scope", "end"),
    [
        ("describe_cluster", EVERY, "Describe --cluster"),
        ("describe_topics", EVERY, "Describe --topic '*'"),
        ("read_consumer_offsets", NameScope(name="__consumer_offsets"), "Read --topic __consumer_offsets"),
        (
            "describe_topic_configs",
            NameScope(PatternType.PREFIXED, "orders."),
            "DescribeConfigs --topic orders. --resource-pattern-type prefixed",
        ),
        ("describe_groups", NameScope(name="bill; rm -rf ~"), "Describe --group 'bill; rm -rf ~'"),
        ("describe_transactional_ids", EVERY, "Describe --transactional-id '*'"),
    ],
)  # fmt: skip
def test_a_command_is_what_kafkas_tool_takes(key: str, scope: NameScope, end: str) -> None:
    acl = acl_of(BY_KEY[key], scope, "User:x", SERVERS)
    assert acl.command == f"{BEGINNING} {end}"


def test_a_script_is_comments_and_one_command_each() -> None:
    lines = list(script([(needed, EVERY) for needed in NEEDED], "User:O'Neil", SERVERS))
    assert [line.startswith("# ") for line in lines] == [True, False] * len(NEEDED)
    assert all("User:O'Neil" in shlex.split(line) for line in lines[1::2])


def test_a_principal_is_a_user_unless_it_says_otherwise() -> None:
    assert with_type("tidemark") == "User:tidemark"
    assert with_type("User:CN=tidemark,O=x") == "User:CN=tidemark,O=x"


@pytest.mark.parametrize(
    ("settings", "principal"),
    [
        ({}, "User:ANONYMOUS"),
        ({"security_protocol": "SSL"}, "User:PRINCIPAL"),
        ({"security_protocol": "SASL_SSL", "sasl_username": "tidemark"}, "User:tidemark"),
    ],
)
def test_our_own_principal_is_what_settings_tell(settings: dict[str, str], principal: str) -> None:
    assert principal_of(KafkaSettings.model_validate(settings)) == principal


def test_all_commands_need_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--acls", "tidemark", "--all", "--groups", r"billing-.*"]) == 0
    commands = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("#")]
    assert len(commands) == len(NEEDED)
    [groups] = [line for line in commands if "--group" in line]
    assert groups.endswith("--operation Describe --group billing- --resource-pattern-type prefixed")


def test_all_without_a_principal_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--all"]) == 2
    assert "--all needs --acls PRINCIPAL" in capsys.readouterr().err
