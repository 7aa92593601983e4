"""The groups of settings: what each one means, in which unit, its default and the reason for it.

docs/settings.md and `tidemark config example` are made from these docstrings, so that they are
written for operators.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr

from collectors.security import SaslMechanism, Security, SecurityProtocol
from rules.baseline.series import Metric
from rules.errors import SettingsError
from service.metrics.selection import DEFAULT_MAX_SERIES, NamePatterns, SeriesLimits
from service.settings.alerting import AlertingSettings
from service.settings.application_logs import ApplicationLogSettings
from service.settings.broker_logs import BrokerLogSettings
from service.settings.history import HistorySettings
from service.settings.lag import LagSettings
from service.settings.nightly import NightlySettings
from service.settings.runbooks import RunbooksSettings
from service.settings.scrapes import ScrapeSettings
from service.settings.values import (
    DatabaseUrl,
    Group,
    NamePattern,
    Seconds,
    Token,
    parted,
    read_by,
)


class LogFormat(StrEnum):
    """Format of a log line."""

    AUTO = "auto"
    JSON = "json"
    CONSOLE = "console"


class LogLevel(StrEnum):
    """The least level that is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class KafkaSettings(Group):
    """How to reach and how to query one cluster."""

    name: Annotated[str, Field(min_length=1)] = "default"
    """Name under which the cluster appears everywhere; with the cluster id it is its identity.
    Default: enough while there is one cluster."""

    bootstrap_servers: str = Field(default="", examples=["broker-1:9092,broker-2:9092"])
    """Comma-separated host:port pairs; a few brokers are enough to find all. No default: which
    cluster is watched must never be a guess."""

    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL: what the listener speaks. Default as in Kafka."""

    sasl_mechanism: SaslMechanism = SaslMechanism.SCRAM_SHA_512
    """PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. Default: the one that never sends the password."""

    sasl_username: Annotated[str | None, Field(examples=["tidemark"])] = None
    """User name; needed by the SASL protocols. No default: Kafka has no user of its own."""

    sasl_password: SecretStr | None = None
    """Password; give it as TIDEMARK_KAFKA__SASL_PASSWORD_FILE rather than in a file of settings,
    which is copied and shown more easily."""

    ssl_ca_location: Annotated[str | None, Field(examples=["/etc/tidemark/ca.pem"])] = None
    """PEM file of the authority to trust. Default: the system's trusted roots."""

    ssl_certificate_location: Annotated[
        str | None, Field(examples=["/etc/tidemark/client.pem"])
    ] = None
    """PEM file of the client's own certificate, where the listener asks for one. Default: none, as
    most listeners do not."""

    ssl_key_location: Annotated[str | None, Field(examples=["/etc/tidemark/client-key.pem"])] = None
    """PEM file of the certificate's key. Default: it is in the file of the certificate."""

    ssl_key_password: SecretStr | None = None
    """Password of the key. Default: the key is not encrypted."""

    ssl_check_hostname: bool = True
    """Whether the broker's certificate must carry its host name. Turn off only to try things."""

    request_timeout_seconds: Seconds = 5.0
    """Seconds one broker may take for one request; above a slow disk, below the round's limit."""

    round_timeout_seconds: Seconds = 10.0
    """Seconds after which a round takes what it has; two thirds of the interval of a service."""

    sees_all_transactional_ids: bool = False
    """Whether Tidemark may describe every transactional id: brokers silently leave those that it may not
    out of their lists. Default: false, and Tidemark finds out, which needs DESCRIBE on Cluster; a wrong
    true takes transactions that are only hidden for hanging ones."""

    transaction_log: bool = True
    """Whether to follow the coordinators' log `__transaction_state`, which needs READ on it: durations,
    commits, aborts and fenced producers are known from it alone. Default: on, and where it may not be
    read every round has a gap; turn it off if that is intended."""

    batch_samples: bool = True
    """Whether each round samples the newest batches of some partitions, headers only and less than 1 MiB in
    all: they alone show which producers are not idempotent, and which groups commit outside their
    transactions. Needs READ on the topics. Default: on, and where a topic may not be read every round has
    a gap; turn it off if that is intended."""

    def security(self) -> Security:
        """Return the security settings of every client of this cluster."""
        password, key_password = self.sasl_password, self.ssl_key_password
        return Security(
            protocol=self.security_protocol,
            sasl_mechanism=self.sasl_mechanism,
            sasl_username=self.sasl_username,
            sasl_password=password.get_secret_value() if password else None,
            ssl_ca_location=self.ssl_ca_location,
            ssl_certificate_location=self.ssl_certificate_location,
            ssl_key_location=self.ssl_key_location,
            ssl_key_password=key_password.get_secret_value() if key_password else None,
            ssl_check_hostname=self.ssl_check_hostname,
        )


class ServiceSettings(Group):
    """How the process of `tidemark serve` works."""

    data_dir: Annotated[str, Field(min_length=1)] = "~/.local/state/tidemark"
    """Folder of everything that outlives the process; one process at a time uses it. Default: in
    the user's state folder (XDG_STATE_HOME), which needs no rights that a user does not have."""

    interval_seconds: Annotated[float, Field(ge=0.5, le=3600)] = 15.0
    """Seconds from the start of one round to the start of the next. Default: the usual scrape
    interval of Prometheus, so that every scrape finds a new round."""

    risk_interval_seconds: Annotated[float, Field(ge=0.2, le=3600)] = 1.0
    """Seconds between observations of partitions at risk, between rounds; each is over within four fifths
    of it. Default: whether a record that was appended after the last observation before its leader died is
    lost cannot be known, and a second is cheap."""

    max_risk_partitions: Annotated[int, Field(ge=0, le=1_000_000)] = 2000
    """Partitions at risk that are observed between rounds, those with the smallest ISR first; 0 for
    none. Default: what a dead broker of a large cluster puts at risk, at about one per cent of one core."""

    drain_seconds: Seconds = 25.0
    """Seconds to finish a round, store it and close everything after SIGTERM. Default: below the
    30 s after which Kubernetes kills."""

    log_format: LogFormat = LogFormat.AUTO
    """json, console or auto. Default: auto, which is console on a terminal and json elsewhere,
    because people read the one and programs the other."""

    log_level: LogLevel = LogLevel.INFO
    """Least level that is logged. Default: info, which is one line per round and every change."""

    topics: Annotated[NamePattern | None, Field(examples=[r"orders\..*"])] = None
    """Only topics whose whole name matches are watched. Default: all, because records are also lost
    where nobody is looking."""

    groups: Annotated[NamePattern | None, Field(examples=["billing-.*"])] = None
    """Only consumer groups whose whole name matches are watched. Default: all, as for topics."""

    def data_directory(self) -> Path:
        """Return the absolute path of the data directory; a leading "~" is the user's home."""
        return Path(self.data_dir).expanduser().absolute()


class DatabaseSettings(Group):
    """Where findings, checkpoints and tokens are kept."""

    url: Annotated[DatabaseUrl | None, Field(examples=["postgresql://tidemark@db/tidemark"])] = None
    """PostgreSQL to use, 15 or newer; with a password in it, give TIDEMARK_DATABASE__URL_FILE.
    Default: one that Tidemark runs itself in the data directory, so that nothing is installed."""

    waiting_rounds: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Rounds kept in memory while the database is away; the oldest are dropped first. Default: four hours
    at one round in 15 s, longer than it usually takes to move or repair a database."""

    keep_transitions_days: Annotated[int, Field(ge=1, le=3650)] = 90
    """Days for which changes of a finding's verdict and change events are kept. Default: a quarter, which covers most
    reviews of incidents."""


class HttpSettings(Group):
    """The HTTP server: metrics, health and the API."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address to listen on; 0.0.0.0 or :: for every one. Default: this machine only, because the
    connection is not encrypted."""

    port: Annotated[int, Field(ge=0, le=65535)] = 8780
    """TCP port; 0 takes any that is free. Default: one that no part of Kafka or Prometheus uses."""

    token: Token | None = None
    """Bearer token with scope read that needs no database, for a scraper: 16 characters or more,
    best as TIDEMARK_HTTP__TOKEN_FILE. Default: none, as a secret that everybody knows is none."""

    require_token: bool = False
    """Whether requests on the loopback interface need a token too. Default: false, as only this machine can
    send them; turn it on where a proxy on this machine forwards those of others. Most proxies set a header
    by which Tidemark sees that, but not all (nginx sets none unless told to)."""

    max_concurrent_requests: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Requests answered at once; more are rejected with 503. Default: far above a few scrapers and
    dashboards, and few enough that a storm of requests does not delay a round."""


def _history_metrics(text: str) -> tuple[Metric, ...]:
    """Return metrics of history by their names.

    Raises:
        SettingsError: there is none of a name.
    """
    try:
        return tuple(dict.fromkeys(map(Metric, parted(text))))
    except ValueError as exc:
        raise SettingsError(f"metrics of history are {', '.join(Metric)}") from exc


class MetricsSettings(Group):
    """Which partitions and groups get series on the page of metrics, and which bands are shown there."""

    max_series: Annotated[int, Field(ge=0, le=10_000_000)] = DEFAULT_MAX_SERIES
    """Series of partitions and groups at most, and of replicas, brokers and clients in what these
    leave; a partition or group that does not fit is left out whole, and what is left out is counted.
    Default: what one Prometheus still scrapes within its interval."""

    topics_allow: Annotated[NamePattern | None, Field(examples=[r"orders\..*"])] = None
    """Only topics whose whole name matches get series. Default: all; max_series is the limit."""

    topics_deny: Annotated[NamePattern | None, Field(examples=["tmp-.*"])] = None
    """Topics whose whole name matches get none, even if allowed. Default: nothing is denied, so
    that no name is missing by surprise."""

    groups_allow: Annotated[NamePattern | None, Field(examples=["billing-.*"])] = None
    """Only groups whose whole name matches get series. Default: all; max_series is the limit."""

    groups_deny: Annotated[NamePattern | None, Field(examples=["console-consumer-.*"])] = None
    """Groups whose whole name matches get none, even if allowed. Default: nothing is denied; deny
    the throw-away groups of tools where there are many."""

    baseline_metrics: Annotated[
        str, read_by(_history_metrics), Field(examples=["read_committed_lag_seconds,produce_rate"])
    ] = ""
    """Comma-separated metrics of history whose usual band of now is on the page, as
    tidemark_baseline_band. Default: none, as Grafana reads bands from the database."""

    baseline_topics: Annotated[str | None, Field(min_length=1, examples=["orders*"])] = None
    """Bands of these topics only; * matches any text. Default: all."""

    baseline_groups: Annotated[str | None, Field(min_length=1, examples=["billing-*"])] = None
    """Bands of these groups only, where a metric is of groups; * matches any text. Default: all."""

    max_baseline_series: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    """Series at most whose bands are shown, with three bounds each. Default: more than a dashboard
    can show, and read in milliseconds."""

    def chosen_metrics(self) -> tuple[Metric, ...]:
        """Return the metrics of history whose bands are shown."""
        return _history_metrics(self.baseline_metrics)

    def limits(self) -> SeriesLimits:
        """Return the limits of the page of metrics."""
        return SeriesLimits(
            max_series=self.max_series,
            topics=NamePatterns(allow=self.topics_allow, deny=self.topics_deny),
            groups=NamePatterns(allow=self.groups_allow, deny=self.groups_deny),
        )


class SandboxSettings(Group):
    """Where the local cluster keeps its files; read by `tidemark sandbox`."""

    dir: Annotated[str | None, Field(examples=["/var/tmp/tidemark-sandbox"])] = None  # noqa: S108 - an example for a person
    """Folder of the cluster. Default: tidemark/sandbox in the user's state folder, where what may
    be thrown away belongs."""

    cache: Annotated[str | None, Field(examples=["/var/cache/tidemark"])] = None
    """Folder of Kafka's jars. Default: tidemark in the user's cache folder, so that they are
    downloaded once."""


class Settings(Group):
    """All settings, by group."""

    kafka: KafkaSettings = KafkaSettings()
    service: ServiceSettings = ServiceSettings()
    database: DatabaseSettings = DatabaseSettings()
    http: HttpSettings = HttpSettings()
    metrics: MetricsSettings = MetricsSettings()
    broker_logs: BrokerLogSettings = BrokerLogSettings()
    application_logs: ApplicationLogSettings = ApplicationLogSettings()
    scrapes: ScrapeSettings = ScrapeSettings()
    alerting: AlertingSettings = AlertingSettings()
    history: HistorySettings = HistorySettings()
    nightly: NightlySettings = NightlySettings()
    lag: LagSettings = LagSettings()
    runbooks: RunbooksSettings = RunbooksSettings()
    sandbox: SandboxSettings = SandboxSettings()
