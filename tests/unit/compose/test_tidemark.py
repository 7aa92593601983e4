"""Tidemark in the Compose stack: its settings, secrets, data and database."""

from __future__ import annotations

from urllib.parse import urlsplit

from service.settings.advice import is_loopback
from service.settings.sources import PREFIX
from tests.unit.compose.stack import (
    BROKERS,
    SERVICES,
    by_default,
    environment,
    listeners,
    mounts,
    secret,
    tidemark_settings,
)


def test_tidemark_reads_the_file_that_is_mounted() -> None:
    assert SERVICES["tidemark"]["command"] == ["serve", "--config", "/etc/tidemark/tidemark.toml"]
    assert (
        by_default(mounts("tidemark")["/etc/tidemark"]) == "./dashboards/stack/alerts_by/tidemark"
    )


def test_every_setting_of_tidemark_is_known_and_accepted() -> None:
    assert all(key.startswith(PREFIX) for key in environment("tidemark"))
    assert tidemark_settings().kafka.name == "compose"


def test_tidemark_answers_where_it_is_published_and_only_with_a_token() -> None:
    http = tidemark_settings().http
    assert not is_loopback(http)
    assert SERVICES["tidemark"]["ports"] == [f"127.0.0.1:{http.port}:{http.port}"]
    assert http.token is not None


def test_tidemark_keeps_its_data_on_its_volume() -> None:
    folder = tidemark_settings().service.data_dir
    assert mounts("tidemark")[str(folder)] == "tidemark"


def test_tidemark_is_pointed_at_the_brokers_of_the_stack() -> None:
    internal = [environment(name)["KAFKA_ADVERTISED_LISTENERS"] for name in BROKERS]
    addresses = [f"{host}:{port}" for host, port in (listeners(i)["INTERNAL"] for i in internal)]
    assert tidemark_settings().kafka.bootstrap_servers.split(",") == addresses


def test_the_database_url_and_the_database_have_one_password() -> None:
    url, database = urlsplit(secret("database_url")), environment("postgres")
    assert url.password == secret("postgres_password")
    assert url.username == database["POSTGRES_USER"]
    assert url.path == f"/{database['POSTGRES_DB']}"
    assert (url.hostname, url.port) == ("postgres", 5432)


def test_the_token_is_long_enough_to_be_accepted() -> None:
    assert len(secret("http_token")) >= 16


def test_postgres_keeps_its_data_where_its_major_version_does() -> None:
    major = int(SERVICES["postgres"]["image"].partition(":")[2].partition(".")[0])
    folder = "/var/lib/postgresql" if major >= 18 else "/var/lib/postgresql/data"
    assert f"postgres:{folder}" in SERVICES["postgres"]["volumes"]
