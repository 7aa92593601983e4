"""What the commands of the pages stand for, how they end, and which of them another test runs.

The pages name brokers, tokens, alerts and times that nobody has. `SUBSTITUTIONS` says what stands for them
where the commands are run (tests/integration/serve/documented/); the names in braces are made there. A new
command usually needs nothing here: a row only if it names something new, ends with another code than 0, or
cannot end by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.site.commands import ShellLine

# In this order, each on what the one before left.
SUBSTITUTIONS: Final[tuple[tuple[str, str], ...]] = (
    # The sandbox's brokers, and the one service that watches them.
    (r"broker-1:9093,broker-2:9093", "{sasl_bootstrap}"),
    (r"broker-1:9093\b", "{bootstrap}"),  # of a user that may alter the cluster
    (r"SASL_SSL", "SASL_PLAINTEXT"),  # the sandbox's listener that checks permissions
    (r"broker-1:9092(,broker-2:9092)?|127\.0\.0\.1:(9092|PORT)\b", "{bootstrap}"),
    (r"https?://(tidemark\.example(:8780)?|10\.0\.0\.7:8780|tidemark:8780|127\.0\.0\.1:8780)", "{server}"),
    (r"\blocalhost:8780", "{server}"),
    (r"^(?=TIDEMARK_DATABASE__URL_FILE=)", "env -u TIDEMARK_DATABASE__URL "),
    (r"(?<=token revoke )prometheus(?= --data-dir)", "on-call"),  # a name is never used again
    (r"^(?=tidemark sequence explain - )", "cat server.log | "),
    (r"^(?=tidemark explain -$)", "cat app.log | "),
    # Files: an absolute path is one below the test's own folder.
    (r"/opt/kafka/bin", "{workspace}/bin"),
    (r"DATA_DIR", "{database_dir}"),
    (r"LOG_DIR", "{log_dir}"),
    (r"(?<= )/(safe|data/kafka)/", "{log_dir}/"),
    (r"(?<![\w.:/~}])/(etc|run|var|opt|tmp)/", r"{workspace}/\1/"),
    (r"(?<=explain )FILE", "server.log"),
    (r"(?<=(export|.rules) )DIR", "files"),
    # A runbook's values: those of an alert about the topic and group of the examples.
    (r"(--reset-offsets --group=)(\{group\}|GROUP)", r"\1audit"),  # a group with members is not reset
    (r"(?<=abort --topic=)\{topic\} --partition=\{partition\}", "payments --partition=0"),
    (r"\{start_offset\}", "{spare_start}"),
    (r"\{(topic|partition|group|transactional_id)(:re)?\}", r"{example_\1}"),
    (r"\{epoch_end\}|\{certain_to\}|EPOCH_END", "5"),
    (r"\{check\}", "topic_replication"),
    (r"(?<=--entity-name=)TOPIC", "orders"),
    (r"MILLISECONDS", "604800000"),
    # Kafka's tools in examples of the sandbox.
    (r"--topic T --partition 0 --start-offset 5", "--topic T --partition 0 --start-offset {t_start}"),
    (r"--transactionalId T\b", "--transactionalId payments-7"),
    (r"(?<=tx show )ID\b", "payments-7"),
    # Alerts: an event can be closed, and the others fire as long as they last.
    (r"(?<=alerts close )(\{fingerprint\}|0123456789abcdef)", "{event}"),
    (r"(?<=loss show )(committed_records_lost-0123456789abcdef|ID\b)", "{loss}"),
    (r"(?<=loss show )orders-0", "orders-3"),
    (r"(?<=runbook run )0123(456789abcdef)?\b", "{event}"),
    (r"(?<=alerts show )0123\b", "{state}"),
    (r"(?<=lag )bill\b", "billing"),
    (r"\{fingerprint\}|FINGERPRINT|\b0123456789abcdef\b", "{state}"),
    (r"\b0a1b2c3d4e5f6071\b", "{other}"),
    (r"(?<=application-errors show )0123456789ab\b", "{application_error}"),
    (r"(?<=events show )0123456789ab\b", "{change_event}"),
    (r"\b0123456789ab\b", "{sequence}"),
    (r"(?<=silences expire )6f1c2b1e(-8c4d-4a0e-9f57-3d1f0f0c9a11)?", "{silence_to_expire}"),
    (r"6f1c2b1e-8c4d-4a0e-9f57-3d1f0f0c9a11", "{silence}"),
    (r"(deliveries \w+) 7\b", r"\1 {delivery}"),
    # Baselines, and times within what the service has seen.
    (r"\b1234567890123456789\b|(?<=show )SERIES\b", "{series}"),
    (r"\b0a1b2c3d4e5f60718293\b", "{run}"),
    (r"--from TIME --to TIME", "--from {hour_ago} --to {now}"),
    (r"(?<=tidemark at )(-15m|-2h|2026-01-31T03:00:00Z)", "{seen}"),
    (r"2026-01-31T02:00:00Z|2026-03-29T02:00:00Z", "{hour_ago}"),
    (r"2026-01-31T0[34]:00:00Z|2026-03-29T02:01:00Z", "{now}"),
    (r"2026-01-31T22:00:00Z", "{tomorrow}"),
)  # fmt: skip
FILLED: Final = re.compile(r"\{([a-z]\w*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Exit codes beside 0 that a command may have here, and why."""

    pattern: str
    codes: frozenset[int]
    why: str


EXPECTED: Final = (
    Expected(
        pattern=r"tidemark log inspect .*",
        codes=frozenset({1, 6}),
        why="a broker may be writing a batch just then; a partition may have too few offsets",
    ),
    Expected(
        pattern=r"tidemark log diff .*",
        codes=frozenset({1}),
        why="the copy is of a log whose leader has not changed",
    ),
    Expected(
        pattern=r"tidemark loss ls\b.*",
        codes=frozenset({12}),
        why="a loss is stored",
    ),
    Expected(
        pattern=r"tidemark loss check\b.*",
        codes=frozenset({1}),
        why="without --before a partition is never known to have lost nothing",
    ),
    Expected(
        pattern=r".*tidemark (--context \S+ )?(status|watch|doctor)\b.*",
        codes=frozenset({1}),
        why="not everything is seen: no controller's log is read, and the sandbox's user has no limits",
    ),
    Expected(
        pattern=r"tidemark alerts close .*",
        codes=frozenset({14}),
        why="another page has closed the event",
    ),
    Expected(
        pattern=r"tidemark deliveries replay .*",
        codes=frozenset({14}),
        why="it was delivered",
    ),
    Expected(
        pattern=r"tidemark incident .*",
        codes=frozenset({1}),
        why="history has no hour of a service that has just been started",
    ),
    Expected(
        pattern=r".*tidemark posture\b.*",
        codes=frozenset({1, 16}),
        why="some topics have a single replica, and a lag has no seconds within seconds",
    ),
    Expected(
        pattern=r"tidemark record-errors ls\b.*",
        codes=frozenset({1}),
        why="no endpoint of metrics is configured",
    ),
    Expected(
        pattern=r"tidemark series .*",
        codes=frozenset({1}),
        why="nothing is measured within seconds",
    ),
    Expected(
        pattern=r"tidemark sequence ls\b.*",
        codes=frozenset({1}),
        why="nothing decides the gap yet",
    ),
    Expected(
        pattern=r"tidemark tx hanging .*|tidemark tx hanging",
        codes=frozenset({11}),
        why="a transaction hangs",
    ),
)
BEFORE: Final[Mapping[str, str]] = {
    r"tidemark log diff SAFE_PLACE.*": "cp -a LOG_DIR/orders-3 SAFE_PLACE/",
    r"tidemark loss check .*--before before\.json.*": "tidemark collect --once -o json > before.json",
    r"tidemark token revoke prometheus": "tidemark token create prometheus --scope read || true",
    r"tidemark token revoke .* --data-dir .*": "tidemark token create on-call --scope read || true",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """Commands that do not end by themselves, break brokers, or take minutes; the test that runs them.

    The test's file has to hold `mention`.
    """

    pattern: str
    test: str
    mention: str


COVERED: Final = (
    Covered(
        pattern=r"(TIDEMARK_HTTP__TOKEN_FILE=\S+ )?tidemark serve\b.*",
        test="tests/integration/serve/served.py",
        mention='"service", "serve"',
    ),
    Covered(
        pattern=r"kill %2 %1",
        test="tests/integration/serve/test_shutdown.py",
        mention="SIGTERM",
    ),
    Covered(
        pattern=r"tidemark sandbox (up|down)\b.*",
        test="tests/integration/test_sandbox.py",
        mention='run("down"',
    ),
    Covered(
        pattern=r"tidemark sandbox (kill|pause|resume|start)\b.*",
        test="tests/integration/test_sandbox.py",
        mention="sandbox.kill, sandbox.pause, sandbox.resume, sandbox.start",
    ),
    Covered(
        pattern=r"tidemark sandbox workload\b.*",
        test="tests/integration/test_workloads.py",
        mention='"sandbox", "workload"',
    ),
    Covered(
        pattern=r"tidemark sandbox receive\b.*",
        test="tests/integration/test_receive_cli.py",
        mention='"sandbox", "receive"',
    ),
    Covered(
        pattern=r"tidemark sandbox demo\b.*",
        test="tests/story/test_demo.py",
        mention='"sandbox", "demo"',
    ),
    Covered(
        pattern=r"tidemark sandbox history(?!.*--dry-run).*",
        test="tests/integration/history/test_simulated_history.py",
        mention='"sandbox", "history"',
    ),
    Covered(
        pattern=r"tidemark sandbox fault .*--seconds.*|tidemark sandbox fault (stuck-marker|overdue).*",
        test="tests/integration/test_fault_commands.py",
        mention='"overdue-transaction"',
    ),
    Covered(
        pattern=r"tidemark sandbox fault (committed-loss|double-failover).*",
        test="tests/integration/test_loss_faults.py",
        mention='"fault", "committed-loss"',
    ),
    Covered(
        pattern=r"tidemark sandbox fault sequence-.*",
        test="tests/faults/printed.py",
        mention='"fault", "sequence-loss"',
    ),
    Covered(
        pattern=r"tidemark sandbox tool kafka-console-consumer.sh .*",
        test="tests/integration/test_sandbox.py",
        mention="test_kafkas_tools_find_their_classes",
    ),
    Covered(
        pattern=r"tidemark collect --interval \d+",
        test="tests/integration/test_collect.py",
        mention='"--interval"',
    ),
    Covered(
        pattern=r"tidemark tx hanging --interval \d+.*",
        test="tests/integration/test_tx.py",
        mention='"tx", "hanging", "--interval"',
    ),
    Covered(
        pattern=r"tidemark nightly run(?!.* --dry-run).*",
        test="tests/spark/test_history_import.py",
        mention='"nightly", "run"',
    ),
    Covered(
        pattern=r"tidemark backtest\b.*",
        test="tests/spark/test_backtest.py",
        mention='"backtest"',
    ),
    Covered(
        pattern=r"tidemark history import\b.*",
        test="tests/spark/test_history_import.py",
        mention='"history", "import"',
    ),
    Covered(
        pattern=r"tidemark dashboards push\b.*",
        test="tests/integration/test_dashboards_push.py",
        mention='"push"',
    ),
)
# What a comment right before a block may say that it needs, `<!-- needs: docker -->`: its lines with one of
# these words are run nowhere. Its other lines are run.
NEEDS: Final[Mapping[str, str]] = {
    "docker": r"\bdocker\b",
    "internet": r"git\+URL|git clone",
    "root": r"\bsudo\b",
    "kubernetes": r"^kubectl (create|apply|--namespace)",
    "jmx exporter": r"-javaagent:",
}
SETS: Final = re.compile(r"export .*|[A-Z_]+=(\"[^\"]*\"|\S*)")  # for the lines after it


def needed_by(line: ShellLine) -> frozenset[str]:
    """Return what a line needs that no test has."""
    return frozenset(name for name, words in NEEDS.items() if re.search(words, line.text))


def covered_by(line: ShellLine) -> Covered | None:
    """Return what says which other test runs a line."""
    return next((each for each in COVERED if re.fullmatch(each.pattern, line.text)), None)


def is_run(line: ShellLine) -> bool:
    """Return whether the line is run as it stands, with what `SUBSTITUTIONS` puts into it."""
    return not needed_by(line) and covered_by(line) is None


def expected_codes(text: str) -> frozenset[int]:
    """Return the exit codes that a line may have."""
    more = (each.codes for each in EXPECTED if re.fullmatch(each.pattern, text))
    return frozenset({0}).union(*more)


def substituted(text: str, values: Mapping[str, str]) -> str:
    """Return a line with what stands for its example names."""
    for pattern, replacement in SUBSTITUTIONS:
        text = re.sub(pattern, replacement, text)
    return FILLED.sub(lambda found: values.get(found[1], found[0]), text)


def setup_of(text: str) -> str | None:
    """Return the line that has to be run before a line, where an earlier one of the pages undid it."""
    return next((line for pattern, line in BEFORE.items() if re.fullmatch(pattern, text)), None)
