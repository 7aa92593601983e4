"""Settings of an operator; `read_settings` is called once, at start."""

from service.runtime.secret_files import MAX_SECRET_BYTES, secret_from
from service.settings.alerting import AlertingSettings
from service.settings.application_logs import ApplicationLogSettings
from service.settings.broker_logs import BrokerLogSettings, LogFileSettings
from service.settings.entries import entries
from service.settings.groups import HttpSettings, KafkaSettings, LogFormat, LogLevel, Settings
from service.settings.history import HistorySettings
from service.settings.scrapes import ScrapeSettings
from service.settings.sources import (
    Source,
    Sourced,
    absolute_files,
    read_settings,
    read_sourced,
)

__all__ = [
    "MAX_SECRET_BYTES",
    "AlertingSettings",
    "ApplicationLogSettings",
    "BrokerLogSettings",
    "HistorySettings",
    "HttpSettings",
    "KafkaSettings",
    "LogFileSettings",
    "LogFormat",
    "LogLevel",
    "ScrapeSettings",
    "Settings",
    "Source",
    "Sourced",
    "absolute_files",
    "entries",
    "read_settings",
    "read_sourced",
    "secret_from",
]
