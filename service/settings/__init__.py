"""Settings of an operator; `read_settings` is called once, at start."""

from service.settings.alerting import AlertingSettings
from service.settings.broker_logs import BrokerLogSettings, LogFileSettings
from service.settings.entries import Entry, entries
from service.settings.groups import (
    DatabaseSettings,
    HttpSettings,
    KafkaSettings,
    LogFormat,
    LogLevel,
    MetricsSettings,
    SandboxSettings,
    ServiceSettings,
    Settings,
)
from service.settings.history import HistorySettings
from service.settings.scrapes import ScrapeSettings
from service.settings.sources import (
    MAX_SECRET_BYTES,
    Source,
    Sourced,
    read_settings,
    read_sourced,
    secret_from,
)

__all__ = [
    "MAX_SECRET_BYTES",
    "AlertingSettings",
    "BrokerLogSettings",
    "DatabaseSettings",
    "Entry",
    "HistorySettings",
    "HttpSettings",
    "KafkaSettings",
    "LogFileSettings",
    "LogFormat",
    "LogLevel",
    "MetricsSettings",
    "SandboxSettings",
    "ScrapeSettings",
    "ServiceSettings",
    "Settings",
    "Source",
    "Sourced",
    "entries",
    "read_settings",
    "read_sourced",
    "secret_from",
]
