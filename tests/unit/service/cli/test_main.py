"""Exit codes and the speed of the help."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from rules.errors import (
    AuthenticationError,
    CollectError,
    ConflictError,
    NotInstalledError,
    NotThereError,
    RequestError,
    SandboxError,
    SettingsError,
    StoreError,
    TidemarkError,
    UnreachableError,
)
from service.cli.main import LazyGroup, exit_code_of, run
from service.terminal.exit_codes import ExitCode

ROOT: Final = Path(__file__).parents[4]
HEAVY: Final = (
    *("asyncio", "confluent_kafka", "email.message", "fastapi", "http.client", "httpcore2"),
    *("httpx2", "importlib.metadata", "kio", "logging", "numpy", "prometheus_client", "pyarrow"),
    *("pydantic", "pyspark", "rich", "scramp", "service.cli.server.contexts", "sqlalchemy", "ssl"),
    *("structlog", "subprocess", "yaml"),
)
NO_DURATIONS: Final = ("2", "h", "-2h", "2h 3m", "0s", "999999w", "1h999999w999999w9", "1.5h")
NO_TIMES: Final = ("tomorrow", "2026-01-31", "2026-01-31T03:00:00")
SILENCE: Final = "6f1c2b1e-8c4d-4a0e-9f57-3d1f0f0c9a11"
NOT_SECONDS: Final = ("nan", "inf", "-inf", "1e300", "-1")
LISTS_MODULES: Final = """
import json, sys
from service.cli.main import run
code = run(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingsError("x"), ExitCode.SETTINGS),
        (UnreachableError("x"), ExitCode.UNREACHABLE),
        (AuthenticationError("x"), ExitCode.AUTHENTICATION),
        (SandboxError("x"), ExitCode.SANDBOX),
        (CollectError("x"), ExitCode.INCOMPLETE),
        (StoreError("x", retryable=True), ExitCode.STORE),
        (StoreError("x", retryable=False), ExitCode.STORE),
        (RequestError("x"), ExitCode.USAGE),
        (NotThereError("x"), ExitCode.NOTHING_MATCHED),
        (ConflictError("x"), ExitCode.CONFLICT),
        (NotInstalledError("x"), ExitCode.NOT_INSTALLED),
    ],
)
def test_each_family_of_errors_has_its_exit_code(error: TidemarkError, code: ExitCode) -> None:
    assert exit_code_of(error) is code


def test_exit_codes_are_a_contract_with_scripts() -> None:
    assert {code.name: code.value for code in ExitCode} == {
        "OK": 0,
        "INCOMPLETE": 1,
        "USAGE": 2,
        "SETTINGS": 3,
        "UNREACHABLE": 4,
        "AUTHENTICATION": 5,
        "NOTHING_MATCHED": 6,
        "SANDBOX": 7,
        "OUTPUT": 8,
        "STORE": 9,
        "FAILED": 10,
        "HANGING": 11,
        "LOST": 12,
        "NOTHING_TO_EXPLAIN": 13,
        "CONFLICT": 14,
        "NOT_INSTALLED": 15,
        "FIRING": 16,
        "INTERRUPTED": 130,
    }


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], ExitCode.OK),
        (["--version"], ExitCode.OK),
        (["nonsense"], ExitCode.USAGE),
        (["collect", "--nonsense"], ExitCode.USAGE),
        (["collect", "--interval", "0"], ExitCode.USAGE),
        (["collect", "--once", "--topics", "("], ExitCode.USAGE),
        (["collect", "--once", "--topics", "a{99999999999}"], ExitCode.USAGE),
        (["collect", "--once", "--groups", "(" * 5000 + ")" * 5000], ExitCode.USAGE),
        *((["collect", "--interval", seconds], ExitCode.USAGE) for seconds in NOT_SECONDS),
        (["sandbox", "demo", "--seconds", "3"], ExitCode.USAGE),
        *((["sandbox", "workload", "--rate", rate], ExitCode.USAGE) for rate in NOT_SECONDS),
        *((["sandbox", "workload", "--slow-rate", rate], ExitCode.USAGE) for rate in NOT_SECONDS),
        (["sandbox", "workload", "--seconds", "nan"], ExitCode.USAGE),
        (["sandbox", "workload", "--seconds", "inf"], ExitCode.USAGE),
        (["token", "create", "a"], ExitCode.USAGE),
        (["token", "create", "a", "--scope", "all"], ExitCode.USAGE),
        (["token", "create", " ", "--scope", "read"], ExitCode.USAGE),
        (["token", "create", "a\nb", "--scope", "read"], ExitCode.USAGE),
        (["token", "revoke", "x" * 101], ExitCode.USAGE),
        (["tx", "ls", "--class", "broken"], ExitCode.USAGE),
        (["tx", "ls", "--topic", "("], ExitCode.USAGE),
        (["tx", "show"], ExitCode.USAGE),
        (["tx", "hanging", "--interval", "1.9"], ExitCode.USAGE),
        (["tx", "hanging"], ExitCode.SETTINGS),
        (["loss", "ls", "--class", "lost"], ExitCode.USAGE),
        (["loss", "ls", "--since", "yesterday"], ExitCode.USAGE),
        (["loss", "ls", "--since", "2026-01-31T03:00:00"], ExitCode.USAGE),
        (["loss", "ls", "--server", "nonsense"], ExitCode.USAGE),
        (["loss", "ls", "--token-file", "/no/such/file"], ExitCode.SETTINGS),
        (["loss", "show"], ExitCode.USAGE),
        (["loss", "show", "orders"], ExitCode.USAGE),
        (["sequence", "explain", "/no/such/file"], ExitCode.USAGE),
        (["sequence", "explain", "/dev/null", "--server", "nonsense"], ExitCode.USAGE),
        (["sequence", "ls", "--class", "lost"], ExitCode.USAGE),
        (["sequence", "ls", "--producer-id", "-1"], ExitCode.USAGE),
        (["sequence", "ls", "--token-file", "/no/such/file"], ExitCode.SETTINGS),
        (["sequence", "show"], ExitCode.USAGE),
        (["sequence", "show", "orders"], ExitCode.USAGE),
        (["sequence", "explain", "/"], ExitCode.USAGE),
        (["sequence", "explain", "/dev/null"], ExitCode.NOTHING_TO_EXPLAIN),
        (["sequence", "explain", "/dev/null", "--time-zone", "Moon"], ExitCode.USAGE),
        (["sequence", "explain", "/dev/null", "--broker-id", "-1"], ExitCode.USAGE),
        (["alerts", "ls", "--state", "loud"], ExitCode.USAGE),
        (["alerts", "ls", "--server", "nonsense"], ExitCode.USAGE),
        (["alerts", "ls", "--token-file", "/no/such/file"], ExitCode.SETTINGS),
        (["alerts", "show", "orders-3"], ExitCode.USAGE),
        (["alerts", "ack"], ExitCode.USAGE),
        (["alerts", "ack", "0123456789abcdef", "0123456789ABCDEF"], ExitCode.USAGE),
        (["alerts", "close", "0123456789abcdef"], ExitCode.USAGE),
        (["silences", "add", "--for", "2h", "--comment", "x"], ExitCode.USAGE),
        (["silences", "add", "topic=a", "--comment", "x"], ExitCode.USAGE),
        (["silences", "add", "topic=a", "--for", "2h"], ExitCode.USAGE),
        *(
            (["silences", "add", "a=b", "--comment", "x", "--for", d], ExitCode.USAGE)
            for d in NO_DURATIONS
        ),
        *(
            (["silences", "add", "a=b", "--comment", "x", "--until", t], ExitCode.USAGE)
            for t in NO_TIMES
        ),
        (
            [
                "silences",
                "add",
                "a=b",
                "--comment",
                "x",
                "--for",
                "1h",
                "--until",
                "2026-01-31T03:00:00Z",
            ],
            ExitCode.USAGE,
        ),
        (["silences", "edit", SILENCE], ExitCode.USAGE),
        (["silences", "expire", "all"], ExitCode.USAGE),
        (["silences", "show", "7"], ExitCode.USAGE),
        (["deliveries", "show", "seven"], ExitCode.USAGE),
        (["deliveries", "replay", "0"], ExitCode.USAGE),
        (["receivers", "test", "pager", "--wait", "-1"], ExitCode.USAGE),
        (["audit", "--since", "yesterday"], ExitCode.USAGE),
        (["sandbox", "receive", "--port", "70000"], ExitCode.USAGE),
        (["sandbox", "receive", "--secret", "whsec_short"], ExitCode.USAGE),
        (["sandbox", "receive", "--record", "/no/such/folder/file"], ExitCode.SANDBOX),
        (["db", "check", "--config", "/no/such/file.toml"], ExitCode.SETTINGS),
        (["db", "check", "--data-dir", ""], ExitCode.SETTINGS),
        (["db", "check", "--data-dir", "/no/such/folder"], ExitCode.STORE),
        (["token", "list", "--data-dir", "/no/such/folder"], ExitCode.STORE),
        (["collect", "--once"], ExitCode.SETTINGS),
        (["collect", "--once", "--bootstrap-servers", "nonsense"], ExitCode.SETTINGS),
        (["collect", "--once", "--config", "/no/such/file.toml"], ExitCode.SETTINGS),
        (["collect", "--once", "--sasl-password-file", "/no/such/file"], ExitCode.SETTINGS),
    ],
)
def test_a_command_ends_with_the_code_of_its_outcome(
    arguments: list[str], code: ExitCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIDEMARK_KAFKA__BOOTSTRAP_SERVERS", raising=False)
    assert run(arguments) == code


def test_our_errors_are_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    run(["collect", "--once", "--bootstrap-servers", "nonsense"])
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "tidemark: bootstrap server 'nonsense' is not host:port\n"


def test_help_and_docs_list_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    run(["--help"])
    of_help = capsys.readouterr().out.partition("Exit codes:")[2]
    page = (ROOT / "docs/exit-codes.md").read_text(encoding="utf-8")
    codes = sorted(ExitCode)
    assert sorted(int(code) for code in re.findall(r"(?m)(?:^| ) +(\d+)  \w", of_help)) == codes
    assert [int(code) for code in re.findall(r"(?m)^\| (\d+) \|", page)] == codes


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["alerts", "ls", "--help"],
        ["at", "--help"],
        ["audit", "--help"],
        ["collect", "--help"],
        ["config", "check", "--help"],
        ["db", "upgrade", "--help"],
        ["deliveries", "replay", "--help"],
        ["groups", "show", "--help"],
        ["incident", "--help"],
        ["jobs", "show", "--help"],
        ["lag", "--help"],
        ["loss", "ls", "--help"],
        ["sandbox", "--help"],
        ["sandbox", "demo", "--help"],
        ["sandbox", "receive", "--help"],
        ["receivers", "test", "--help"],
        ["runbook", "run", "--help"],
        ["silences", "add", "--help"],
        ["sequence", "explain", "--help"],
        ["sequence", "ls", "--help"],
        ["series", "--help"],
        ["serve", "--help"],
        ["status", "--help"],
        ["token", "create", "--help"],
        ["tx", "ls", "--help"],
        ["watch", "--help"],
    ],
)
def test_the_help_imports_nothing_heavy(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LISTS_MODULES, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == ExitCode.OK
    assert "Usage:" in done.stdout
    assert [name for name in HEAVY if name in modules] == []


def test_the_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    run(["--help"])
    told = capsys.readouterr().out
    for name, (_, summary) in LazyGroup.commands_by_module.items():
        assert name in told
        assert summary in told


@pytest.mark.parametrize(
    "words",
    [
        "",
        "alerts", "alerts ls", "alerts show", "alerts ack", "alerts unack", "alerts close",
        "audit",
        "deliveries", "deliveries ls", "deliveries show", "deliveries replay",
        "jobs", "jobs ls", "jobs show", "jobs run",
        "receivers", "receivers ls", "receivers test",
        "silences", "silences ls", "silences show", "silences add", "silences edit", "silences expire",
        "collect",
        "config", "config check", "config example",
        "db", "db check", "db upgrade",
        "loss", "loss ls", "loss show",
        "sandbox", "sandbox up", "sandbox receive",
        "sequence", "sequence explain", "sequence ls", "sequence show",
        "token", "token create", "token list", "token revoke",
        "tx", "tx ls", "tx show", "tx hanging",
    ],
)  # fmt: skip
def test_every_help_has_examples(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words.split(), "--help"]) == ExitCode.OK
    assert f"tidemark {words}".strip() in capsys.readouterr().out.partition("Examples:")[2]


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("colect", "No such command 'colect'. Did you mean collect?"),
        ("tokens", "No such command 'tokens'. Did you mean token?"),
        ("nonsense", "No such command 'nonsense'.\n"),
    ],
)
def test_an_unknown_command_names_the_nearest(
    typed: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([typed]) == ExitCode.USAGE
    assert told in capsys.readouterr().err
