"""The groups of a service: defaults, bounds, and what a rejection says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rules.errors import SettingsError
from service.metrics.selection import NamePatterns, SeriesLimits
from service.settings import LogFormat, LogLevel, read_settings
from service.settings.groups import Settings

TOKEN = "0123456789abcdef"  # noqa: S105 - for tests


def rejection(**environment: str) -> str:
    with pytest.raises(SettingsError) as caught:
        read_settings({f"TIDEMARK_{name}": value for name, value in environment.items()})
    return str(caught.value)


def test_defaults_of_a_service() -> None:
    settings = read_settings({})
    service = settings.service
    assert (service.interval_seconds, service.drain_seconds) == (15, 25)
    assert (service.log_format, service.log_level) == (LogFormat.AUTO, LogLevel.INFO)
    assert (service.topics, service.groups) == (None, None)
    database = settings.database
    assert (database.url, database.waiting_rounds, database.keep_transitions_days) == (
        None, 1000, 90,
    )  # fmt: skip
    http = settings.http
    assert (http.host, http.port, http.token, http.max_concurrent_requests) == (
        "127.0.0.1", 8780, None, 64,
    )  # fmt: skip
    assert settings.metrics.limits() == SeriesLimits()


def test_the_data_directory_is_in_the_state_folder_of_the_user() -> None:
    assert read_settings({}).service.data_directory() == Path.home() / ".local/state/tidemark"
    of_xdg = read_settings({"XDG_STATE_HOME": "/var/state"}).service
    assert of_xdg.data_directory() == Path("/var/state/tidemark")


def test_a_relative_state_folder_is_ignored_as_its_convention_tells() -> None:
    assert read_settings({"XDG_STATE_HOME": "here"}) == Settings()


def test_a_given_data_directory_beats_the_state_folder() -> None:
    environment = {"XDG_STATE_HOME": "/var/state", "TIDEMARK_SERVICE__DATA_DIR": "~/kept"}
    assert read_settings(environment).service.data_directory() == Path.home() / "kept"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SERVICE__DATA_DIR", ""),
        ("SERVICE__INTERVAL_SECONDS", "0.49"),
        ("SERVICE__INTERVAL_SECONDS", "3601"),
        ("SERVICE__INTERVAL_SECONDS", "nan"),
        ("SERVICE__DRAIN_SECONDS", "0"),
        ("SERVICE__LOG_FORMAT", "xml"),
        ("SERVICE__LOG_LEVEL", "INFO"),
        ("DATABASE__WAITING_ROUNDS", "0"),
        ("DATABASE__KEEP_TRANSITIONS_DAYS", "0"),
        ("HTTP__HOST", ""),
        ("HTTP__PORT", "-1"),
        ("HTTP__PORT", "65536"),
        ("HTTP__PORT", "80.5"),
        ("HTTP__MAX_CONCURRENT_REQUESTS", "0"),
        ("METRICS__MAX_SERIES", "-1"),
    ],
)
def test_a_value_outside_its_bounds_is_rejected_by_name(variable: str, value: str) -> None:
    assert rejection(**{variable: value}).startswith(f"{variable.lower().replace('__', '.')}: ")


def test_any_free_port_can_be_asked_for() -> None:
    assert read_settings({"TIDEMARK_HTTP__PORT": "0"}).http.port == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("(", "not a regular expression: missing ), unterminated subpattern at position 0"),
        ("a{99999999999}", "not a regular expression: the repetition number is too large"),
        ("(" * 5000 + ")" * 5000, "the expression is nested too deeply"),
        ("", "an empty regular expression matches no name"),
    ],
)
def test_a_bad_expression_is_told_with_its_place(text: str, told: str) -> None:
    assert rejection(SERVICE__TOPICS=text) == f"service.topics: {told}"


def test_objectives_of_time_lag_are_read_and_rejected_by_name() -> None:
    text = '[{"group": "billing-.*", "topic": "orders", "seconds": 60}]'
    (objective,) = read_settings({"TIDEMARK_LAG__OBJECTIVES": text}).lag.facts()
    assert objective.groups.fullmatch("billing-1")
    assert objective.topics is not None
    assert objective.topics.fullmatch("orders")
    assert (objective.seconds, objective.share) == (60, 0.99)
    for wrong, told in (
        ('[{"group": "(", "seconds": 60}]', "not a regular expression"),
        ('[{"group": "g", "seconds": 0}]', "greater than 0"),
        ('[{"group": "g", "seconds": 60, "share": 1}]', "less than 1"),
        ('[{"group": "g"}]', "seconds"),
    ):
        assert told in rejection(LAG__OBJECTIVES=wrong)


@pytest.mark.parametrize(
    ("token", "told"),
    [
        ("short", "a token has at least 16 characters"),
        ("with a space in it", "a token is printable ASCII without spaces"),
        ("0123456789abcdef\t", "a token is printable ASCII without spaces"),
        ("0123456789abcdeé", "a token is printable ASCII without spaces"),
    ],
)
def test_a_weak_token_is_rejected_unseen(token: str, told: str) -> None:
    assert rejection(HTTP__TOKEN=token) == f"http.token: {told}"


@pytest.mark.parametrize("url", ["mysql://me:s3cret@db/x", "s3cret", ""])
def test_a_url_of_another_database_is_rejected_unseen(url: str) -> None:
    told = rejection(DATABASE__URL=url)
    assert told == "database.url: write postgresql://user:password@host/name"


def test_secrets_are_in_nothing_that_is_shown() -> None:
    url = "postgresql://me:s3cret@db/x"
    settings = read_settings({"TIDEMARK_HTTP__TOKEN": TOKEN, "TIDEMARK_DATABASE__URL": url})
    assert settings.http.token is not None
    assert settings.http.token.get_secret_value() == TOKEN
    for shown in (repr(settings), str(settings), settings.model_dump_json()):
        assert TOKEN not in shown
        assert "s3cret" not in shown


def test_a_metric_that_history_does_not_have_is_rejected() -> None:
    message = rejection(METRICS__BASELINE_METRICS="produce_rate,lags")
    assert "metrics of history are read_committed_lag, " in message
    assert "lags" not in message


def test_patterns_limit_the_series(tmp_path: Path) -> None:
    path = tmp_path / "tidemark.toml"
    path.write_text(
        '[metrics]\nmax_series = 7\ntopics_allow = "a.*"\ngroups_deny = "b"\n', encoding="utf-8"
    )
    assert read_settings({}, path=path).metrics.limits() == SeriesLimits(
        max_series=7,
        topics=NamePatterns(allow=re.compile("a.*")),
        groups=NamePatterns(deny=re.compile("b")),
    )
