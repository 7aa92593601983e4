"""Which log files are read: a list of tables from a file or as JSON, and what is rejected."""

from __future__ import annotations

import json
from datetime import UTC, timedelta
from pathlib import Path

import pytest

from rules.errors import SettingsError
from service.settings import LogFileSettings, read_settings, read_sourced
from service.settings.entries import effective, written
from tests.factories import NOON

FILES = "TIDEMARK_BROKER_LOGS__FILES"
KAFKA = "/var/log/kafka/*.log"


def rejection(told: object) -> str:
    text = told if isinstance(told, str) else json.dumps(told)
    with pytest.raises(SettingsError) as caught:
        read_settings({FILES: text})
    return str(caught.value)


def test_no_log_is_read_unless_it_is_named() -> None:
    assert read_settings({}).broker_logs.files == ()


def test_a_file_of_settings_and_the_environment_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "tidemark.toml"
    path.write_text(
        "[[broker_logs.files]]\n"
        f'path = "{KAFKA}"\nbroker_id = 1\ntime_zone = "+02:00"\n'
        '[[broker_logs.files]]\npath = "/b.log"\nname = "b"\n',
        encoding="utf-8",
    )
    told = [
        {"path": KAFKA, "broker_id": 1, "time_zone": "+02:00"},
        {"path": "/b.log", "name": "b"},
    ]
    of_file = read_settings({}, path=path).broker_logs
    assert of_file == read_settings({FILES: json.dumps(told)}).broker_logs
    first, second = of_file.files
    assert (first.source, first.broker_id) == (KAFKA, 1)
    assert first.zone.utcoffset(NOON) == timedelta(hours=2)
    assert (second.source, second.broker_id, second.zone) == ("b", None, UTC)


def test_the_environment_replaces_the_whole_list(tmp_path: Path) -> None:
    path = tmp_path / "tidemark.toml"
    path.write_text('[[broker_logs.files]]\npath = "/a.log"\n', encoding="utf-8")
    found = read_settings({FILES: '[{"path": "/b.log"}]'}, path=path).broker_logs.files
    assert found == (LogFileSettings(path="/b.log"),)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("[", "broker_logs.files: not a list of tables in JSON"),
        ("[" * 100_000, "broker_logs.files: not a list of tables in JSON"),
        ("{}", "broker_logs.files: not a list of tables"),
        ([3], "broker_logs.files.0: input should be"),
        ([{}], "broker_logs.files.0.path: field required"),
        ([{"path": "kafka.log"}], "broker_logs.files.0.path: write an absolute path"),
        ([{"path": "/a\0.log"}], "broker_logs.files.0.path: write an absolute path"),
        ([{"path": "/var/log/"}], "broker_logs.files.0.path: this is a folder"),
        ([{"path": "/a", "speed": 1}], "unknown setting broker_logs.files.0.speed"),
        ([{"path": "/a", "broker_id": -1}], "broker_logs.files.0.broker_id: input should be"),
        ([{"path": "/a", "name": ""}], "broker_logs.files.0.name: string should have"),
        (
            [{"path": "/a", "time_zone": "Mars"}],
            "broker_logs.files.0.time_zone: no time zone like Europe/Berlin or +02:00",
        ),
        ([{"path": "/a"}, {"path": "/b"}, {"path": "/a"}], "broker_logs: two of"),
        ([{"path": "/a"}, {"path": "/b", "name": "/a"}], "broker_logs: two of"),
    ],
)
def test_what_cannot_be_used_is_rejected_by_its_place(told: object, why: str) -> None:
    assert rejection(told).startswith(why)


def test_a_list_is_shown_as_it_was_set() -> None:
    told = [{"path": KAFKA, "broker_id": 1, "time_zone": "UTC"}]
    rows = {key: value for key, value, _ in effective(read_sourced({FILES: json.dumps(told)}))}
    shown = rows["broker_logs.files"]
    assert shown == told
    assert written(shown) == f'[{{ path = "{KAFKA}", broker_id = 1, time_zone = "UTC" }}]'
