"""What a person does wrong, or finds wrong, at night: one clear line and a documented exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from service.__main__ import main
from service.cli.main import run
from service.terminal.exit_codes import ExitCode
from tests.unit.service.cli.api_rows import SILENCE_ID, alert, detail, silence
from tests.unit.service.cli.documents import PREFIX, STAMP, Handler, page, serving
from tests.unit.service.cli.printing import at_terminal

ROOT: Final = Path(__file__).parents[4]
HEAVY: Final = (  # 10 ms of CPU and more, each
    *("alembic", "apscheduler", "confluent_kafka", "fastapi", "kio", "numpy", "psycopg", "pyarrow"),
    *("pydantic", "pyspark", "re2", "sqlalchemy", "starlette", "structlog", "uvicorn"),
    *("anyio", "asyncio", "email.mime", "httpcore2", "httpx2", "importlib.metadata", "logging"),
    *("multiprocessing", "rich", "subprocess", "urllib.request", "yaml"),
)
ON_CALL: Final = {  # each with a name that fits
    "status": ["status"],
    "lag": ["lag"],
    "lag GROUP": ["lag", "billing"],
    "groups ls": ["groups", "ls"],
    "groups show": ["groups", "show", "billing"],
    "at": ["at", "2025-06-02T12:00:00Z", "orders-3"],
    "at GROUP": ["at", "2025-06-02T12:00:00Z", "billing"],
    "series": ["series", "--metric", "produce_rate", "--topic", "orders", "--partition", "3"],
    "series ID": ["series", "1234"],
    "incident": ["incident", "abcd000000000001"],
    "incident --from": ["incident", "--from", "-1h"],
    "runbook run": ["runbook", "run", "abcd000000000001", "--no-input"],
    "alerts ls": ["alerts", "ls"],
    "alerts show": ["alerts", "show", "abcd"],
}
each_command: Final = pytest.mark.parametrize("arguments", ON_CALL.values(), ids=ON_CALL)
NOT_UTF_8: Final = "\udcff"  # as the byte 0xff of an argument
FIRST, SECOND = "abcd000000000001", "abcd000000000002"
LISTS_MODULES: Final = """
import json, sys
from service.cli.main import run
code = run(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """Yield the address of a server, which commands query by default."""
    with serving() as address:
        monkeypatch.setenv("TIDEMARK_SERVER", address)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        yield address


@each_command
def test_without_a_service_it_says_where_it_was_sought(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, "--server", "http://127.0.0.1:1"]) == ExitCode.UNREACHABLE
    err = capsys.readouterr().err
    assert err.startswith("tidemark: http://127.0.0.1:1 cannot be reached")
    assert err.count("\n") == 1


@pytest.mark.usefixtures("server")
@each_command
def test_a_wrong_token_names_the_scope(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Handler.denies = True
    (tmp_path / "token").write_text("secret", encoding="utf-8")
    done = run([*arguments, "--token-file", str(tmp_path / "token")])
    err = capsys.readouterr().err
    assert done == ExitCode.AUTHENTICATION
    assert "denies us" in err
    assert "tidemark token create" in err
    assert "secret" not in err
    assert err.count("\n") == 1


@each_command
def test_what_is_no_tidemark_is_named_so(
    arguments: list[str], server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Handler.kind = "text/html"
    assert run(arguments) == ExitCode.UNREACHABLE
    err = capsys.readouterr().err
    assert err == f"tidemark: {server} is not a Tidemark: it answers 404 Not Found, text/html\n"


@each_command
def test_an_older_service_without_a_path_is_named_so(
    arguments: list[str], server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == ExitCode.UNREACHABLE
    err = capsys.readouterr().err
    assert err.startswith(f"tidemark: {server} has no {PREFIX}")
    assert err.endswith(": an older Tidemark?\n")
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", sorted(ON_CALL.keys() - {"incident --from"}))
def test_an_older_service_that_lacks_fields_is_named_so(
    name: str, server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Handler.default = STAMP
    assert run(ON_CALL[name]) == ExitCode.UNREACHABLE
    err = capsys.readouterr().err
    assert err.startswith(f"tidemark: {server} answers without '")
    assert err.endswith("': an older Tidemark?\n")
    assert err.count("\n") == 1


@pytest.mark.usefixtures("server")
def test_a_report_says_of_what_it_lacks_that_it_is_not_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Handler.default = STAMP
    assert run(ON_CALL["incident --from"]) == ExitCode.INCOMPLETE
    out = capsys.readouterr().out
    assert "**UNKNOWN whether records are lost.**" in out
    for heading in ("Lost offsets", "Verdicts and their proof"):
        assert f"## {heading}\n\nNot known: see Missing." in out
    assert "- losses: http://" in out


@pytest.mark.usefixtures("server")
def test_the_beginning_of_an_id_suffices(capsys: pytest.CaptureFixture[str]) -> None:
    Handler.documents = {
        "alerts": page(alert(fingerprint=FIRST), alert(fingerprint="0" * 16)),
        f"alerts/{FIRST}": detail(fingerprint=FIRST),
    }
    assert run(["alerts", "show", "abcd"]) == ExitCode.OK
    assert FIRST in capsys.readouterr().out


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("abcd", ExitCode.USAGE, (FIRST, SECOND, "several alerts")),
        ("ffff", ExitCode.NOTHING_MATCHED, ("no alert 'ffff'",)),
        ("abc", ExitCode.USAGE, ("is no fingerprint",)),
        ("ünï", ExitCode.USAGE, ("'ünï' is no fingerprint",)),
    ],
)
def test_an_id_that_fits_none_or_several_is_one_clear_line(
    name: str, code: ExitCode, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    Handler.documents = {"alerts": page(alert(fingerprint=FIRST), alert(fingerprint=SECOND))}
    assert run(["alerts", "show", name]) == code
    err = capsys.readouterr().err
    assert [word for word in words if word not in err] == []
    assert len([line for line in err.splitlines() if line.startswith(("tidemark:", "Error:"))]) == 1


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    "arguments",
    [
        ["groups", "show", NOT_UTF_8],
        ["loss", "ls", "--topic", NOT_UTF_8],
        ["alerts", "ls", "--rule", NOT_UTF_8],
        ["jobs", "show", NOT_UTF_8],
        ["baselines", "ls", "--topic", NOT_UTF_8],
        ["alerts", "ack", FIRST, "--comment", NOT_UTF_8],
    ],
)
def test_an_argument_that_is_not_utf_8_is_one_clear_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Handler.documents = {f"alerts/{FIRST}": detail(fingerprint=FIRST)}
    assert run(arguments) == ExitCode.USAGE
    err = capsys.readouterr().err
    assert "\\udcff" in err
    assert err.endswith("is not UTF-8\n")
    assert err.count("\n") == 1


@pytest.mark.usefixtures("server")
def test_without_standard_output_a_report_is_written_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Handler.default = STAMP
    monkeypatch.setattr(sys, "stdout", None)
    assert run(ON_CALL["incident --from"]) == ExitCode.INCOMPLETE


def lists() -> dict[str, dict[str, Any]]:
    """Return lists with two ids that begin with abcd, and what is at the first of them."""
    second = silence(id=f"abcd2{SILENCE_ID[5:]}")
    first = silence(id=f"abcd1{SILENCE_ID[5:]}")
    runs = [{"run_id": "abcd1f"}, {"run_id": "abcd2f"}]
    groups = [{"group": "abcd1 billing"}, {"group": "abcd2"}]
    return {
        "status": {**STAMP, "round": {"outcome": "complete"}, "gaps_by_cause": {}},
        "alerts": page(alert(fingerprint=FIRST), alert(fingerprint=SECOND)),
        "silences": page(first, second),
        f"silences/{first['id']}": {**STAMP, "silence": first},
        "jobs": page({"name": "abcd1"}, {"name": "abcd2"}),
        "jobs/abcd1": {**page(), "job": {"name": "abcd1"}},
        "baselines": page(*runs),
        "baselines/series": {**page({"series_id": "43211"}, {"series_id": "43212"})},
        "groups": page(*groups),
        "groups/abcd1%20billing": {**page(), "group": {"group": "abcd1 billing"}, "members": None},
        "receivers": page({"name": "abcd1"}),
    }


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    "arguments",
    [
        ["silences", "show", "abcd1"],
        ["jobs", "show", "abcd1"],
        ["lag", "abcd1"],
        ["groups", "show", "abcd1"],
        ["rules", "show", "sequence_gap_los"],
    ],
)
def test_the_beginning_of_any_name_suffices(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Handler.documents = lists()
    screen = at_terminal(monkeypatch)
    assert run(arguments) in (ExitCode.OK, ExitCode.INCOMPLETE)
    assert arguments[-1] in screen.getvalue()


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["silences", "show", "abcd"], ExitCode.USAGE, "several silences: abcd1"),
        (["silences", "expire", "abcd"], ExitCode.USAGE, "several silences: abcd1"),
        (["silences", "show", "xyz"], ExitCode.USAGE, "is not the id of a silence"),
        (["jobs", "show", "abcd"], ExitCode.NOTHING_MATCHED, "mean abcd1 or abcd2?"),
        (["jobs", "run", "abcd11"], ExitCode.NOTHING_MATCHED, "did you mean abcd1"),
        (["receivers", "test", "abcd11"], ExitCode.NOTHING_MATCHED, "did you mean abcd1?"),
        (["lag", "abcd"], ExitCode.NOTHING_MATCHED, "did you mean abcd1 billing or abcd2?"),
        (["lag", "abcd1"], ExitCode.NOTHING_MATCHED, "did you mean abcd1 billing?"),
        (["groups", "show", "abd2"], ExitCode.NOTHING_MATCHED, "did you mean abcd2?"),
        (["series", "4321"], ExitCode.USAGE, "several series: 43211, 43212"),
        (["baselines", "show", "4321"], ExitCode.USAGE, "several series: 43211, 43212"),
        (["incident", "abcd"], ExitCode.USAGE, "several alerts"),
        (["runbook", "run", "abcd"], ExitCode.USAGE, "several alerts"),
        (
            ["baselines", "rollback", "--reason", "x", "--to", "abcd"],
            ExitCode.USAGE,
            "several baseline runs: abcd1f, abcd2f",
        ),
        (["rules", "show", "committed"], ExitCode.NOTHING_MATCHED, "did you mean committed_"),
        (["runbook", "show", "sequence_gap_los"], ExitCode.NOTHING_MATCHED, "sequence_gap_loss?"),
        (["rules", "show", "sequnce_gap_loss"], ExitCode.NOTHING_MATCHED, "mean sequence_gap_loss"),
    ],
)
def test_a_name_that_fits_none_or_several_is_one_clear_line(
    arguments: list[str], code: ExitCode, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Handler.documents = lists()
    done = run(arguments)
    err = capsys.readouterr().err
    assert done == code, err
    assert words in err


@pytest.mark.parametrize("name", ["status", "lag GROUP", "at", "series", "incident", "runbook run"])
def test_ctrl_c_while_it_waits_ends_it_at_once(name: str, server: str) -> None:
    Handler.answers.clear()
    with subprocess.Popen(
        [sys.executable, "-m", "service", *ON_CALL[name]],
        cwd=ROOT,
        env={**os.environ, "TIDEMARK_SERVER": server},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert Handler.queried.wait(30)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err.strip()) == (ExitCode.INTERRUPTED, "", "interrupted")


def test_ctrl_c_outside_of_a_command_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("service.cli.main.run", interrupted)
    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as ended:
            main()
    finally:
        signal.signal(signal.SIGINT, before)
    assert (ended.value.code, capsys.readouterr()) == (ExitCode.INTERRUPTED, ("", ""))


@pytest.mark.parametrize("name", ["status", "lag", "groups show", "at", "series", "alerts ls"])
def test_a_command_of_a_running_service_imports_nothing_heavy(
    name: str, server: str, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("secret", encoding="utf-8")
    Handler.documents = {
        "status": {
            **STAMP,
            "cluster": "groesse",
            "round": {"outcome": "complete", "error": None},
            "storage": {"state": "stored", "error": None, "lost_transitions": 0},
            "gaps_by_cause": {},
            "rules": [],
        },
        "alerts": {**page(alert(labels={"group": "groesse"})), "counts": {}},
        "losses": page(),
        "sequences": page(),
        "groups": page({"group": "groesse", "state": "Stable"}),
        "groups/billing": {**page(), "group": {"group": "billing"}, "members": []},
        "measured": {
            **STAMP,
            "series": {"metric": "produce_rate", "topic": "orders", "partition": 3},
            "measured": {"values": [], "unreadable": [], "from": None, "to": None, "unit": "x"},
        },
        "at": {
            **STAMP,
            "time": STAMP["as_of"],
            "read_at": STAMP["as_of"],
            "distance_seconds": 0.0,
            "partition": {"high_watermark": 5},
            "unreadable": [],
        },
    }
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            LISTS_MODULES,
            *ON_CALL[name],
            "--token-file",
            str(tmp_path / "token"),
        ],
        cwd=ROOT,
        env={**os.environ, "TIDEMARK_SERVER": server},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code in (ExitCode.OK, ExitCode.INCOMPLETE)
    words = {"at": "orders-3", "series": "topic orders", "groups show": "billing"}
    assert words.get(name, "groesse") in done.stdout
    assert [name for name in HEAVY if name in modules] == []
