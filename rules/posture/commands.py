"""The commands that set what is wrong, as templates: `{servers}` and `{name}` are filled in per line."""

from __future__ import annotations

from typing import Final

_CONFIGS: Final = "kafka-configs.sh --bootstrap-server {servers} --alter"
OF_TOPIC: Final = f"{_CONFIGS} --entity-type topics --entity-name {{name}} --add-config "
# `{brokers}` names all of them, or the one that has a value of its own at run time: that value would win.
OF_BROKERS: Final = f"{_CONFIGS} --entity-type brokers {{brokers}} --add-config "
FEATURE: Final = "kafka-features.sh --bootstrap-server {servers} upgrade --feature "
# For settings that are read at the start only.
IN_FILE: Final = "In server.properties of every broker, then restart them one after the other: "
# With fewer brokers a topic with three replicas cannot be created at all.
WITH_BROKERS: Final = "Needs three brokers. "
REASSIGN: Final = (
    "kafka-reassign-partitions.sh --bootstrap-server {servers} --reassignment-json-file "
    "{name}.json --execute"
)
