"""What clients' files are said to do is what real producers do: Java's of each release of the sandbox, and librdkafka.

No broker is needed: a producer rejects its settings before it connects.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import KafkaException, Producer

from collectors.client_config.properties import read_properties
from rules.posture.client_config.clients import Library
from rules.posture.client_config.finding import Release
from rules.posture.client_config.judging import judge_files
from rules.posture.client_config.reasons import Why
from service.sandbox.cluster import jars
from service.sandbox.cluster.java import find_java
from service.sandbox.cluster.layout import default_cache
from service.sandbox.cluster.releases import DEFAULT_VERSION, find_release, supported
from tests.applications.java_classes import compile_classes
from tests.unit.rules.posture.client_config.test_judging import PRODUCERS

pytestmark = pytest.mark.integration

SOURCE: Final = Path(__file__).parent / "java" / "ClientConfigs.java"
SECONDS: Final = 180.0
IDEMPOTENT, NOT_IDEMPOTENT, REJECTED = "idempotent", "not idempotent", "does not start"
OFF: Final = {Why.IDEMPOTENCE_SWITCHED_OFF, Why.IDEMPOTENCE_OFF, Why.IDEMPOTENCE_OFF_BY_DEFAULT}
# Every file of the unit tests of one library that has values, and some more.
JAVA: Final = tuple(
    dict.fromkeys(text for text, library, _, _ in PRODUCERS.values() if library is Library.JAVA and "${" not in text)
)  # fmt: skip
RDKAFKA: Final = tuple(
    dict.fromkeys(text for text, library, _, _ in PRODUCERS.values() if library is Library.LIBRDKAFKA)
)  # fmt: skip


def said(text: str, library: Library, release: Release | None = None) -> str:
    """Return what the judgement says of a file."""
    file = read_properties("producer.properties", text.replace(" ", "\n").encode())
    whys = {Why(line.posture.reason) for line in judge_files([file], library=library, release=release).lines}  # fmt: skip
    if Why.DOES_NOT_START in whys:
        return REJECTED
    return NOT_IDEMPOTENT if whys & OFF else IDEMPOTENT


def class_path(version: str, folder: Path) -> str:
    pinned = jars.read_lock(find_release(version).lock_file)
    cache = default_cache() / f"kafka-{version}"
    published = jars.ensure_jars(cache, pinned, java=find_java(), progress=lambda _: None)
    path = jars.classpath(published, pinned, version)
    compile_classes([SOURCE], path, folder)
    return f"{folder}:{path}"


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(version, marks=[] if version == DEFAULT_VERSION else [pytest.mark.variation])
        for version in supported()
    ],
)
def test_java_does_what_is_said(version: str, tmp_path: Path) -> None:
    command = [str(find_java()), "-Xmx128m", "-cp", class_path(version, tmp_path), "ClientConfigs"]
    done = subprocess.run(command, input="\n".join(JAVA), capture_output=True, text=True, timeout=SECONDS, check=True)  # fmt: skip
    major, minor, patch = (int(part) for part in version.split("."))
    answers = done.stdout.splitlines()
    assert dict(zip(JAVA, answers, strict=True)) == {
        text: said(text, Library.JAVA, (major, minor, patch)) for text in JAVA
    }


@pytest.mark.parametrize("text", RDKAFKA)
def test_librdkafka_does_what_is_said(text: str) -> None:
    settings = dict(part.split("=", 1) for part in text.split())
    try:
        Producer({"bootstrap.servers": "127.0.0.1:1", **settings})
        starts = True
    except KafkaException:
        starts = False
    assert starts == (said(text, Library.LIBRDKAFKA) != REJECTED)
