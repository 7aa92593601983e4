"""`tidemark posture --client-config`: what it prints of files, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from service.cli.main import run
from service.cli.posture.client_files import release_of
from service.terminal.exit_codes import ExitCode
from tests.schemas import validate


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMARK_SERVER", raising=False)


def posture(folder: Path, text: str, *options: str) -> int:
    file = folder / "app.properties"
    file.write_text(text, encoding="utf-8")
    return run(["posture", "--client-config", str(file), *options])


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(capsys.readouterr().out)
    validate("posture", parsed)
    return parsed


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("acks=1\nkey.serializer=x", ExitCode.FIRING),
        ("acks=all\nkey.serializer=x", ExitCode.OK),
        ("group.id=g\nkey.deserializer=x", ExitCode.OK),  # information
        ("acks=${ACKS}\nkey.serializer=x", ExitCode.INCOMPLETE),
        ("acks=all\nkey.serializer=x\nmy.own.setting=1", ExitCode.INCOMPLETE),
        ("<html>", ExitCode.INCOMPLETE),
    ],
    ids=["wrong", "right", "information", "from elsewhere", "not known", "of something else"],
)
def test_exit_codes(tmp_path: Path, text: str, code: ExitCode) -> None:
    assert posture(tmp_path, text) == code


def test_json_names_the_line_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert posture(tmp_path, "# ours\nacks=1\nkey.serializer=x", "-o", "json") == ExitCode.FIRING
    found = document(capsys)
    assert [(row["line"], row["setting"], row["reason"]) for row in found["lines"]] == [
        (2, "acks", "idempotence_switched_off"),
        (2, "acks", "not_replicated"),
    ]
    assert found["files"] == [str(tmp_path / "app.properties")]


def test_a_person_reads_what_is_wrong_and_what_is_assumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "acks=1\nkey.serializer=x\nsasl.password=hunter2\nenable.idempotense=true"
    posture(tmp_path, text, "--client-release", "2.8")
    shown = capsys.readouterr()
    for words in ("not_replicated", "enable.idempotence was probably meant", "release 2.8:"):
        assert words in " ".join(shown.out.split())
    assert "hunter2" not in shown.out + shown.err


def test_a_file_that_cannot_be_read_does_not_take_the_others_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there").write_text("acks=1\nkey.serializer=x", encoding="utf-8")
    files = ["--client-config", str(tmp_path / "gone"), "--client-config", str(tmp_path / "there")]
    assert run(["posture", *files, "-o", "json"]) == ExitCode.FIRING
    found = document(capsys)
    assert len(found["lines"]) == 2
    assert found["problems"] == [f"{tmp_path / 'gone'} cannot be read: no such file or directory"]


@pytest.mark.parametrize("options", [["--topic", "orders"], ["--check", "client_acks"], ["--bootstrap-servers", "b:9092"]])  # fmt: skip
def test_options_of_a_cluster_are_not_for_files(tmp_path: Path, options: list[str]) -> None:
    assert posture(tmp_path, "acks=1", *options) == ExitCode.USAGE


def test_releases() -> None:
    assert release_of("3.9.2") == (3, 9, 2)
    assert release_of("3.1.0") == (3, 1, 0)
    assert release_of("3.1") != (3, 1, 0)
    with pytest.raises(click.BadParameter):
        release_of("three")
