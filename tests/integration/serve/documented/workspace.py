"""The files that the pages' examples name, below a folder of the test's own."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Final

SETTINGS: Final = """
[kafka]
bootstrap_servers = "{servers}"

[alerting]
default_receiver = "pager"
private_ranges = "127.0.0.0/8"

[[alerting.receivers]]
name = "pager"
url = "{receiver}"
"""
RUNBOOK: Final = """---
rule: transaction_hanging
severity: critical
owner: payments on-call, #payments
---
## Meaning

A transaction on {topic}-{partition} hangs.

## Impact

Invoices stop.

## Diagnosis

```sh diagnosis
tidemark tx hanging
```

Expect: the partition, with its proof.

## Mitigation

Ask its owner.

## Verification

```sh diagnosis
tidemark tx hanging
```

Expect: no transaction.

## Escalation

Call #payments.
"""
APPLICATION: Final = """2026-11-21 12:00:00,159 INFO [kafka-producer-network-thread | payments-1] \
[Producer clientId=payments-1, transactionalId=payments-7] Transiting to abortable error state due to \
org.apache.kafka.common.errors.TimeoutException: Expiring 3 record(s) for orders-3:120000 ms has passed since batch creation
"""
LOGS: Final = (
    "cwd/server.log",
    "cwd/broker-1/server.log",
    "cwd/broker-2/server.log",
    "cwd/controller/controller.log",
    "var/log/kafka/server.log",
)
TOKENS: Final = (
    "cwd/admin.token",
    "cwd/http_token",
    "cwd/dashboards/stack/secrets/http_token",
    "home/prod.token",
    "run/secrets/tidemark",
)
FOLDERS: Final = (
    "cwd/SAFE_PLACE",
    "home/.local/share/bash-completion/completions",
    "home/.config/fish/completions",
    "home/.zfunc",
    "etc/prometheus",
    "etc/vector",
    "var/lib/grafana/dashboards",
    "pages",
)


def lay_out(workspace: Path, *, log: str, values: Mapping[str, str]) -> None:
    """Write the files; `cwd` is the folder in which each page's lines run.

    `log` is a broker's log. `values` has `servers`, `receiver`, `url` of the database, and `token`.
    """
    token, settings = values["token"], SETTINGS.format_map(values)
    texts = {
        "cwd/tidemark.toml": settings,
        "etc/tidemark/tidemark.toml": settings,
        "etc/tidemark/runbooks/transaction_hanging.md": RUNBOOK,
        "cwd/admin.properties": "security.protocol=PLAINTEXT\n",
        "cwd/.venv/bin/activate": "",
        "run/secrets/url": values["url"],
        "home/tidemark.password": values["password"],
        "cwd/app.log": APPLICATION,
        "cwd/producer.properties": "acks=all\nkey.serializer=com.example.OrderSerializer\n",
        "cwd/consumer.properties": "group.id=billing\nisolation.level=read_committed\nenable.auto.commit=false\n",
        **dict.fromkeys(LOGS, log),
        **dict.fromkeys(TOKENS, token),
    }
    for folder in FOLDERS:
        (workspace / folder).mkdir(parents=True)
    for name, text in texts.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (workspace / "cwd/server.log.2026-11-21.gz").write_bytes(gzip.compress(log.encode()))
