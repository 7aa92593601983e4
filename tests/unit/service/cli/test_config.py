"""`tidemark config`: what is set and by whom, without showing a secret."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from service.cli.config import check as config_check
from service.cli.main import run
from service.cli.serve import command as serve
from service.settings import Settings, entries, read_settings
from service.terminal.exit_codes import ExitCode

TOKEN = "0123456789abcdef"  # noqa: S105 - for tests


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give an environment that holds one setting, a secret, and a home of its own."""
    for name in [name for name in os.environ if name.startswith("TIDEMARK_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("TIDEMARK_HTTP__TOKEN", TOKEN)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "tidemark.toml"
    path.write_text(
        '[kafka]\nbootstrap_servers = "file:1"\nname = "file"\n'
        '[database]\nurl = "postgresql://me:s3cret@db/x"\n'
        "[service]\ninterval_seconds = 10\n",
        encoding="utf-8",
    )
    return path


def check(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = run(["config", "check", *map(str, arguments)])
    told = capsys.readouterr()
    assert TOKEN not in told.out + told.err
    assert "s3cret" not in told.out + told.err
    return code, told.out, told.err


def document(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    code, out, _ = check(capsys, "-o", "json", *arguments)
    assert code == ExitCode.OK
    found: dict[str, Any] = json.loads(out)
    return found


def test_every_setting_is_shown_with_its_source(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "not" / "made"
    found = document(capsys, "--config", config, "--cluster", "flag", "--data-dir", data)
    rows = {row["key"]: (row["value"], row["source"]) for row in found["settings"]}
    assert list(rows) == [f"{entry.group}.{entry.key}" for entry in entries()]
    assert rows["kafka.name"] == ("flag", "flag")
    assert rows["service.data_dir"] == (str(data), "flag")
    assert rows["kafka.bootstrap_servers"] == ("file:1", "file")
    assert rows["database.url"] == ("***", "file")
    assert rows["http.token"] == ("***", "environment")
    assert rows["http.port"] == (8780, "default")
    assert rows["service.topics"] == (None, "default")
    assert not data.parent.exists()


def test_every_option_of_serve_is_read_and_judged(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(
        capsys,
        *("--config", config, "--interval", 20, "--host", "::1"),
        *("--port", 1234, "--log-format", "json"),
    )
    rows = {row["key"]: row["value"] for row in found["settings"] if row["source"] == "flag"}
    assert rows == {
        "service.interval_seconds": 20,
        "service.log_format": "json",
        "http.host": "::1",
        "http.port": 1234,
    }
    assert found["warnings"] == []  # of the file's interval there was one


def test_serve_and_its_check_have_the_same_options() -> None:
    wanted = {option.name for option in serve.params}
    assert {option.name for option in config_check.params} == wanted | {"output", "no_color"}


def test_the_table_has_a_line_per_setting(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = check(capsys, "--config", config)
    assert code == ExitCode.OK
    lines = [line.split() for line in out.splitlines()]
    assert len(lines) == len(entries())
    assert ["kafka.name", '"file"', "file"] in lines
    assert ["service.groups", "-", "default"] in lines
    assert ["http.token", '"***"', "environment"] in lines


def test_what_observations_wrong_is_told_and_is_no_failure(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = check(capsys, "--config", config)
    assert code == ExitCode.OK
    assert err.startswith("warning: kafka.round_timeout_seconds (10) is not below")
    assert document(capsys, "--config", config)["warnings"] == [
        err.removeprefix("warning: ").rstrip("\n")
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "no bootstrap servers"),
        (["--bootstrap-servers", "nonsense"], "bootstrap server 'nonsense' is not host:port"),
        (
            ["--bootstrap-servers", "a:1", "--security-protocol", "SASL_SSL"],
            "needs a SASL user name and password",
        ),
        (
            [
                "--bootstrap-servers",
                "a:1",
                "--security-protocol",
                "SSL",
                "--ssl-ca-location",
                "/no/ca",
            ],
            "/no/ca",
        ),
        (["--bootstrap-servers", "a:1", "--data-dir", __file__], "cannot be used: "),
    ],
)
def test_what_a_service_would_refuse_is_rejected_after_the_table(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = check(capsys, *arguments)
    assert code == ExitCode.SETTINGS
    assert len(out.splitlines()) == len(entries())
    assert told in err


def test_a_database_url_that_is_none_is_rejected_without_showing_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEMARK_DATABASE__URL", "mysql://me:s3cret@db/x")
    code, _, err = check(capsys, "--bootstrap-servers", "a:1")
    assert code == ExitCode.SETTINGS
    assert "database.url: write postgresql://" in err


def test_a_bad_file_is_one_line_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tidemark.toml"
    path.write_text("[http]\nport = 1 2\n", encoding="utf-8")
    code, out, err = check(capsys, "--config", path)
    assert (code, out) == (ExitCode.SETTINGS, "")
    assert err.startswith(f"tidemark: settings file {path} is not TOML: ")
    assert err.endswith("(at line 2, column 10)\n")


def test_the_example_can_be_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "example"]) == ExitCode.OK
    path = tmp_path / "tidemark.toml"
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    assert read_settings({}, path=path) == Settings()
