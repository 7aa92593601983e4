"""Settings of scrapes of brokers and clients: what each one means, and why its default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from collectors.scrapes.endpoints import BadAddressError, Credentials, Endpoint, page_at, server_at
from service.settings.values import Group, Seconds, SentToken, parted

MAX_BROKER_ID: Final = 2**31 - 1


def _each(read: Callable[[str], Endpoint]) -> AfterValidator:
    def check(text: str) -> str:
        for number, part in enumerate(parted(text), start=1):
            try:
                read(part)
            except BadAddressError as exc:
                raise ValueError(f"address {number}: {exc}") from exc
        return text

    return AfterValidator(check)


def read_broker_ids(text: str) -> dict[str, int]:
    """Return the broker ids by address or name.

    Raises:
        ValueError: a part is not NAME=ID.
    """
    ids: dict[str, int] = {}
    for number, part in enumerate(parted(text), start=1):
        name, equals, broker_id = part.rpartition("=")
        if not (name and equals and broker_id.isdecimal() and int(broker_id) <= MAX_BROKER_ID):
            raise ValueError(f"part {number} is not NAME=ID, such as broker-1:7071=1")
        ids[name.strip()] = int(broker_id)
    return ids


def _check_broker_ids(text: str) -> str:
    read_broker_ids(text)
    return text


class ScrapeSettings(Group):
    """Metrics of brokers and clients, read from their own pages or from a Prometheus server."""

    pages: Annotated[
        str,
        _each(page_at),
        Field(examples=["http://app-1:8081/metrics,http://broker-1:7071"]),
    ] = ""
    """Comma-separated URLs of metrics pages of producers, brokers and controllers; without a path it is
    /metrics. Default: none, as nobody can guess where they are."""

    target_files: Annotated[str, Field(examples=["/etc/tidemark/targets/*.json"])] = ""
    """Comma-separated files that list more pages, as Prometheus' file_sd_configs reads them (JSON or
    YAML; *, ? and [...] as in a shell); read again when they change. Default: none."""

    prometheus: Annotated[
        str,
        _each(server_at),
        Field(examples=["http://prometheus:9090"]),
    ] = ""
    """Comma-separated URLs of Prometheus servers that scrape the same metrics; their answers are up to a
    minute old. Default: none."""

    prometheus_matchers: Annotated[str, Field(examples=['kafka_cluster="prod"'])] = ""
    """PromQL matchers of this cluster's series, where a server has several clusters'. Default: none,
    which takes all that a server has."""

    broker_ids: Annotated[
        str, AfterValidator(_check_broker_ids), Field(examples=["broker-1:7071=1,kafka-b=2"])
    ] = ""
    """Comma-separated NAME=ID: which broker the page at an address is of, or a series whose label instance,
    pod or host has that name. Needed where neither a label broker_id nor the host says so. Default: none."""

    bearer_token: SentToken | None = None
    """Bearer token of pages; sent to every page. Default: none."""

    username: Annotated[str | None, Field(examples=["tidemark"])] = None
    """User name for pages (HTTP Basic); sent to every page. Default: none."""

    password: SecretStr | None = None
    """Its password. Default: none."""

    prometheus_bearer_token: SentToken | None = None
    """Bearer token of Prometheus servers; never sent to pages. Default: none."""

    prometheus_username: Annotated[str | None, Field(examples=["tidemark"])] = None
    """User name for Prometheus servers (HTTP Basic). Default: none."""

    prometheus_password: SecretStr | None = None
    """Its password. Default: none."""

    ssl_ca_location: Annotated[str | None, Field(examples=["/etc/tidemark/ca.pem"])] = None
    """PEM file of the authority to trust for https. Default: the system's trusted roots."""

    interval_seconds: Annotated[float, Field(ge=0.5, le=3600)] = 15.0
    """Seconds between scrapes of each endpoint; endpoints are spread over it. An answer is used for
    three intervals. Default: as often as rounds are made."""

    timeout_seconds: Seconds = 5.0
    """Seconds an endpoint may take from the connection to the last byte. Default: long for a page, and
    short enough that one that hangs is reported soon; rounds do not wait for it."""

    max_endpoints: Annotated[int, Field(ge=1, le=100_000)] = 500
    """Endpoints that are scraped at most; further ones in the lists become a gap. Default: far above the
    producers of one cluster."""

    max_body_bytes: Annotated[int, Field(ge=1024, le=1_073_741_824)] = 16_777_216
    """Bytes of one answer at most; a larger one is not used. Default: 16 MiB, the page of a broker with
    tens of thousands of partitions."""

    max_series: Annotated[int, Field(ge=1, le=10_000_000)] = 20_000
    """Series that are kept of one endpoint at most, of those that Tidemark uses. Default: a thousand
    clients with five topics each."""

    @model_validator(mode="after")
    def _credentials_fit(self) -> Self:
        for which, name, token, password in (
            ("", self.username, self.bearer_token, self.password),
            (
                "prometheus_",
                self.prometheus_username,
                self.prometheus_bearer_token,
                self.prometheus_password,
            ),
        ):
            if token is not None and name is not None:
                raise ValueError(f"give {which}bearer_token or {which}username, not both")
            if password is not None and name is None:
                raise ValueError(f"{which}password needs {which}username: it is not sent alone")
        return self

    @property
    def is_set(self) -> bool:
        """Whether any endpoint is configured."""
        return bool(parted(self.pages) or parted(self.target_files) or parted(self.prometheus))

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints of the settings, without those in files."""
        pages = [page_at(part) for part in parted(self.pages)]
        return [*pages, *(server_at(part) for part in parted(self.prometheus))]

    def page_credentials(self) -> Credentials:
        """Return the credentials for pages."""
        return _credentials(self.bearer_token, self.username, self.password)

    def server_credentials(self) -> Credentials:
        """Return the credentials for Prometheus servers."""
        return _credentials(
            self.prometheus_bearer_token, self.prometheus_username, self.prometheus_password
        )


def _credentials(
    token: SecretStr | None, username: str | None, password: SecretStr | None
) -> Credentials:
    return Credentials(
        bearer_token=token.get_secret_value() if token else None,
        username=username,
        password=password.get_secret_value() if password else None,
    )
