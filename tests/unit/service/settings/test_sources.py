"""Settings: which source wins, what is rejected, and that secrets stay secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.security import SaslMechanism, SecurityProtocol
from rules.errors import SettingsError
from service.settings import (
    MAX_SECRET_BYTES,
    KafkaSettings,
    Source,
    read_settings,
    read_sourced,
)

PHRASE = "correct horse battery"
BOOTSTRAP = "TIDEMARK_KAFKA__BOOTSTRAP_SERVERS"
PASSWORD_VARIABLE = "TIDEMARK_KAFKA__SASL_PASSWORD"  # noqa: S105 - the name of a variable


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "tidemark.toml"
    path.write_text('[kafka]\nbootstrap_servers = "file:1"\nname = "file"\n', encoding="utf-8")
    return path


def rejection(environment: dict[str, str], path: Path | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        read_settings(environment, path=path)
    return str(caught.value)


def test_nothing_given_means_defaults() -> None:
    kafka = read_settings({}).kafka
    assert kafka == KafkaSettings()
    assert kafka.security_protocol is SecurityProtocol.PLAINTEXT
    assert kafka.sasl_mechanism is SaslMechanism.SCRAM_SHA_512
    assert (kafka.request_timeout_seconds, kafka.round_timeout_seconds) == (5.0, 10.0)


def test_the_file_beats_the_defaults(config: Path) -> None:
    kafka = read_settings({}, path=config).kafka
    assert (kafka.bootstrap_servers, kafka.name) == ("file:1", "file")


def test_the_environment_beats_the_file_key_by_key(config: Path) -> None:
    kafka = read_settings({BOOTSTRAP: "env:2"}, path=config).kafka
    assert (kafka.bootstrap_servers, kafka.name) == ("env:2", "file")


def test_a_flag_beats_the_environment(config: Path) -> None:
    flags = {"kafka": {"bootstrap_servers": "flag:3", "name": None}}
    kafka = read_settings({BOOTSTRAP: "env:2"}, path=config, flags=flags).kafka
    assert (kafka.bootstrap_servers, kafka.name) == ("flag:3", "file")


def test_the_source_that_won_is_known(config: Path) -> None:
    flags = {"kafka": {"name": "flag", "sasl_username": None}}
    sourced = read_sourced({BOOTSTRAP: "env:2"}, path=config, flags=flags)
    keys = ("name", "bootstrap_servers", "sasl_username")
    assert [sourced.source_of("kafka", key) for key in keys] == [
        Source.FLAG, Source.ENVIRONMENT, Source.DEFAULT,
    ]  # fmt: skip
    of_file = read_sourced({"XDG_STATE_HOME": "/var/state"}, path=config)
    assert of_file.source_of("kafka", "name") is Source.FILE
    assert of_file.source_of("service", "data_dir") is Source.DEFAULT


def test_text_of_the_environment_becomes_what_the_setting_is() -> None:
    kafka = read_settings(
        {
            "TIDEMARK_KAFKA__SSL_CHECK_HOSTNAME": "false",
            "TIDEMARK_KAFKA__REQUEST_TIMEOUT_SECONDS": "2.5",
            "TIDEMARK_KAFKA__SECURITY_PROTOCOL": "SSL",
        }
    ).kafka
    assert kafka.ssl_check_hostname is False
    assert kafka.request_timeout_seconds == 2.5
    assert kafka.security_protocol is SecurityProtocol.SSL


def test_other_variables_are_none_of_our_business() -> None:
    assert read_settings({"PATH": "/bin", "TIDE": "x", "KAFKA__NAME": "y"}) == read_settings({})


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        read_settings({}).kafka.name = "other"


@pytest.mark.parametrize(
    ("variable", "named"),
    [
        ("TIDEMARK_KAFKA__QUEUE", "unknown setting kafka.queue (TIDEMARK_KAFKA__QUEUE)"),
        ("TIDEMARK_KAFKA__SASL_USER", "kafka.sasl_user: did you mean kafka.sasl_username? (TIDE"),
        ("TIDEMARK_KAFAK__NAME", "kafak: did you mean kafka? (TIDEMARK_KAFAK__*)"),
        ("TIDEMARK_DEBUG", "unknown setting TIDEMARK_DEBUG"),
        ("TIDEMARK_KAFKA__", "unknown setting TIDEMARK_KAFKA__"),
    ],
)
def test_an_unknown_variable_is_named(variable: str, named: str) -> None:
    assert named in rejection({variable: PHRASE})


def test_whom_commands_ask_is_no_setting() -> None:
    assert read_settings({"TIDEMARK_SERVER": "http://a"}) == read_settings({})


def test_an_unknown_key_of_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tidemark.toml"
    path.write_text('[kafka]\nbootstrap = "a:1"\n[notify]\nurl = "x"\n', encoding="utf-8")
    told = rejection({}, path)
    assert "unknown setting kafka.bootstrap" in told
    assert "unknown setting notify" in told


def test_an_unknown_flag_is_rejected() -> None:
    with pytest.raises(SettingsError, match=r"unknown setting kafka\.speed"):
        read_settings({}, flags={"kafka": {"speed": 3}})


@pytest.mark.parametrize("seconds", ["0", "-1", "3601", "nan", "inf", "soon"])
def test_a_time_limit_outside_its_bounds_is_rejected(seconds: str) -> None:
    told = rejection({"TIDEMARK_KAFKA__REQUEST_TIMEOUT_SECONDS": seconds})
    assert told.startswith("kafka.request_timeout_seconds: input should be")


def test_permitted_values_are_told_as_they_must_be_written() -> None:
    told = rejection({"TIDEMARK_KAFKA__SECURITY_PROTOCOL": "plaintext"})
    assert "kafka.security_protocol" in told
    assert "'PLAINTEXT'" in told


def test_all_wrong_values_are_told_at_once() -> None:
    told = rejection(
        {"TIDEMARK_KAFKA__SECURITY_PROTOCOL": "X", "TIDEMARK_KAFKA__ROUND_TIMEOUT_SECONDS": "x"}
    )
    assert "kafka.security_protocol" in told
    assert "kafka.round_timeout_seconds" in told


def test_every_source_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "tidemark.toml"
    path.write_text('[http]\nport = "x"\n', encoding="utf-8")
    environment = {
        "TIDEMARK_DEBUG": "1",
        "TIDEMARK_HTTP__TOKEN_FILE": str(tmp_path / "missing"),
        "TIDEMARK_KAFKA__NMAE": "x",
    }
    told = rejection(environment, path).split("; ")
    assert [line.partition(":")[0] for line in told] == [
        "unknown setting TIDEMARK_DEBUG",
        "TIDEMARK_HTTP__TOKEN_FILE names a file that cannot be read",
        "unknown setting kafka.nmae",
        "http.port",
    ]
    assert told[3].endswith(f"(in {path})")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing.toml"
    assert rejection({}, path) == f"settings file {path}: no such file or directory"


@pytest.mark.parametrize(
    "content", [b"[kafka\n", b"name = \xff\xfe", b'[kafka]\nname="a"\nname="b"']
)
def test_a_file_that_is_not_toml_is_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "tidemark.toml"
    path.write_bytes(content)
    assert rejection({}, path).startswith(f"settings file {path} is not TOML")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"[kafka]\nname = 1 2\n", "(at line 2, column 10)"),
        (b"[kafka]\nname = '\xff'\n", "(at line 2, column 9)"),
        (b"\xff", "(at line 1, column 1)"),
    ],
)
def test_a_mistake_in_the_file_is_told_with_its_place(
    content: bytes, place: str, tmp_path: Path
) -> None:
    path = tmp_path / "tidemark.toml"
    path.write_bytes(content)
    assert rejection({}, path).endswith(place)


@pytest.mark.parametrize("content", ["a = " + "[" * 10_000, "a = " + "1" * 5_000])
def test_a_file_that_the_parser_gives_up_on_is_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "tidemark.toml"
    path.write_text(content, encoding="utf-8")
    assert rejection({}, path).startswith(f"settings file {path} is ")


@pytest.mark.parametrize("content", ["kafka = 5", "[[kafka]]", "kafka = ['a']"])
def test_a_value_in_the_place_of_a_table_is_rejected(content: str, tmp_path: Path) -> None:
    path = tmp_path / "tidemark.toml"
    path.write_text(content, encoding="utf-8")
    assert rejection({}, path).startswith("kafka: ")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('kafka = "nonsense"', "kafka: a table is expected, and a source gives one value"),
        ('[[kafka]]\nname = "a"', "kafka: a table is expected, and a source gives one value"),
        (
            "[kafka.bootstrap_servers]\na = 1",
            "kafka.bootstrap_servers: one value is expected, and a source gives a table",
        ),
    ],
)
def test_a_value_in_the_place_of_a_table_is_not_hidden_by_a_later_source(
    content: str, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "tidemark.toml"
    path.write_text(content, encoding="utf-8")
    assert rejection({BOOTSTRAP: "env:2"}, path) == told
    with pytest.raises(SettingsError) as caught:
        read_settings({}, path=path, flags={"kafka": {"bootstrap_servers": "flag:3"}})
    assert str(caught.value) == told


def sasl_environment() -> dict[str, str]:
    return {
        "TIDEMARK_KAFKA__SECURITY_PROTOCOL": "SASL_SSL",
        "TIDEMARK_KAFKA__SASL_USERNAME": "billing",
        PASSWORD_VARIABLE: PHRASE,
    }


def test_a_secret_reaches_the_security_and_nothing_that_is_shown() -> None:
    settings = read_settings(sasl_environment())
    security = settings.kafka.security()
    assert security.sasl_password == PHRASE
    for shown in (repr(settings), str(settings), repr(security), settings.model_dump_json()):
        assert PHRASE not in shown


def test_a_rejection_never_shows_a_value() -> None:
    told = rejection(
        sasl_environment()
        | {
            "TIDEMARK_KAFKA__REQUEST_TIMEOUT_SECONDS": PHRASE,
            "TIDEMARK_KAFKA__SASL_PASSWROD": PHRASE,
            "TIDEMARK_KAFKA__SASL_MECHANISM": PHRASE,
        }
    )
    assert PHRASE not in told
    assert "sasl_passwrod" in told


def test_a_secret_of_the_wrong_type_in_the_file_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "tidemark.toml"
    path.write_text("[kafka]\nsasl_password = 123456789\n", encoding="utf-8")
    assert "123456789" not in rejection({}, path)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_secret_is_read_from_a_file_without_its_line_end(end: str, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(f" {PHRASE} {end}".encode())
    environment = sasl_environment() | {f"{PASSWORD_VARIABLE}_FILE": str(path)}
    del environment[PASSWORD_VARIABLE]
    settings = read_settings(environment)
    assert settings.kafka.security().sasl_password == f" {PHRASE} "


def test_any_setting_can_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "servers"
    path.write_text("kafka:9092\n", encoding="utf-8")
    settings = read_settings({f"{BOOTSTRAP}_FILE": str(path)})
    assert settings.kafka.bootstrap_servers == "kafka:9092"


def test_a_secret_file_that_is_not_there_is_named_with_its_setting(tmp_path: Path) -> None:
    told = rejection({f"{PASSWORD_VARIABLE}_FILE": str(tmp_path / "missing")})
    assert told.startswith(f"{PASSWORD_VARIABLE}_FILE names a file that cannot be read")


def test_an_endless_secret_file_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("x" * (MAX_SECRET_BYTES + 100), encoding="utf-8")
    settings = read_settings({f"{PASSWORD_VARIABLE}_FILE": str(path)})
    assert settings.kafka.sasl_password is not None
    assert len(settings.kafka.sasl_password.get_secret_value()) == MAX_SECRET_BYTES


def test_sasl_without_a_password_is_rejected_when_security_is_made() -> None:
    settings = read_settings({"TIDEMARK_KAFKA__SECURITY_PROTOCOL": "SASL_SSL"})
    with pytest.raises(SettingsError, match="needs a SASL user name and password"):
        settings.kafka.security()


def test_a_value_given_twice_in_the_environment_is_rejected() -> None:
    environment = {
        "TIDEMARK_KAFKA__SASL_PASSWORD": "one",
        "TIDEMARK_KAFKA__SASL_PASSWORD_FILE": "/run/secrets/other",
    }
    with pytest.raises(SettingsError, match="keep one of them"):
        read_settings(environment)
