"""Grafana of the Compose stack finds its dashboards, data sources and pages."""

from __future__ import annotations

from urllib.parse import urlsplit

from dashboards.files import RECORDED_FOLDER, TITLE
from dashboards.links import RULE_PAGES_DEFAULT
from tests.unit.compose.stack import ROOT, SERVICES, STACK, read_yaml


def test_grafana_finds_its_dashboards_where_they_are_mounted() -> None:
    folder = STACK / "grafana" / "provisioning"
    (provider,) = read_yaml(folder / "dashboards" / "tidemark.yml")["providers"]
    mounts = [volume.split(":") for volume in SERVICES["grafana"]["volumes"]]
    assert provider["options"]["path"] in [mount[1] for mount in mounts]


def test_grafana_shows_the_dashboards_that_are_generated_in_their_folder() -> None:
    provisioning = STACK / "grafana" / "provisioning" / "dashboards" / "tidemark.yml"
    (provider,) = read_yaml(provisioning)["providers"]
    mounts = dict(volume.split(":")[1::-1] for volume in SERVICES["grafana"]["volumes"])
    assert ROOT / mounts[provider["options"]["path"]] == RECORDED_FOLDER
    assert provider["folder"] == TITLE
    assert any(RECORDED_FOLDER.glob("*.json"))


def test_grafana_serves_the_pages_of_rules_where_dashboards_link_to_them() -> None:
    mounts = dict(volume.split(":")[1::-1] for volume in SERVICES["grafana"]["volumes"])
    assert mounts[f"/usr/share/grafana{RULE_PAGES_DEFAULT}"] == "./docs/rules"


def test_grafana_reads_the_database_with_a_role_that_sees_views_only() -> None:
    file = STACK / "grafana" / "provisioning" / "datasources" / "tidemark.yml"
    (source,) = [one for one in read_yaml(file)["datasources"] if one["name"] == "PostgreSQL"]
    assert source["user"] == "grafana"
    assert source["secureJsonData"]["password"] == "$__file{/run/secrets/reader_password}"  # noqa: S105 - where it is
    assert {"postgres_password", "database_url"}.isdisjoint(SERVICES["grafana"]["secrets"])
    script = "./dashboards/stack/postgres/reader.sh"
    (mounted,) = [one for one in SERVICES["postgres"]["volumes"] if one.startswith(script)]
    assert mounted == f"{script}:/docker-entrypoint-initdb.d/reader.sh:ro"
    assert "reader_password" in SERVICES["postgres"]["secrets"]
    text = (ROOT / script).read_text(encoding="utf-8")
    assert "CREATE ROLE grafana" in text
    assert (ROOT / script).stat().st_mode & 0o111, (
        "a file that cannot be executed is read by another shell"
    )


def test_grafana_has_data_sources_that_are_services_of_the_stack() -> None:
    folder = STACK / "grafana" / "provisioning"
    sources = read_yaml(folder / "datasources" / "tidemark.yml")["datasources"]
    hosts = {urlsplit(f"//{source['url'].removeprefix('http://')}").hostname for source in sources}
    assert hosts == {"prometheus", "postgres", "alertmanager"}
    assert len({source["uid"] for source in sources}) == len(sources)
