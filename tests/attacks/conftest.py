"""One service that is attacked, on real brokers, with a real database, a difficult name and a receiver.

Its data directory has a name that a shell would run, it is started in a folder of traps, and it requires tokens
on loopback, as behind a proxy.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from tests.attacks.attacked import Attacked, ConsoleServed, Pager, tokens_of
from tests.folders import new_folder
from tests.integration.conftest import (  # noqa: F401 - fixtures
    admin,
    brokers,
    cluster,
    new_name,
    sandbox_options,
)
from tests.integration.notify.receiving import Handler, Receiver, receiving, status
from tests.integration.serve.kafka import Kafka
from tests.integration.serve.served import Start, end_processes

DIFFICULT: Final = """it's $(touch ran) `touch ran` a,b "c" ;touch ran"""
TRAPS: Final = ("service", "rules", "json", "click", "pyspark")


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """Give a folder through which the database's user may pass, with modules of others in it."""
    made = new_folder()
    for name in TRAPS:
        (made / "traps" / name).mkdir(parents=True)
        for module in ("__init__", "__main__"):
            code = f"open({str(made / 'ran')!r}, 'a').write(__name__)\n"
            (made / "traps" / name / f"{module}.py").write_text(code, encoding="utf-8")
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="session")
def pager() -> Iterator[Receiver]:
    """Give a receiver; it is down while its answers are no good."""

    def answer(handler: Handler) -> None:
        status(Pager.code)(handler)

    with receiving(answer) as receiver:
        yield receiver


@pytest.fixture(scope="session")
def service(brokers: Sandbox, folder: Path, pager: Receiver) -> Iterator[Attacked]:  # noqa: F811
    """Start the service that all attacks share."""
    directory = folder / DIFFICULT
    start = Start(
        bootstrap=brokers.bootstrap_servers,
        directory=directory,
        topics="attacked.*",
        groups="attacked.*",
        interval=1.0,
        settings={
            "HTTP__REQUIRE_TOKEN": "true",
            "ALERTING__RECEIVERS": json.dumps([{"name": "pager", "url": pager.address}]),
            "ALERTING__DEFAULT_RECEIVER": "pager",
            "ALERTING__PRIVATE_RANGES": "127.0.0.1/32",
            "ALERTING__GROUP_WAIT_SECONDS": "1",
            "ALERTING__GROUP_INTERVAL_SECONDS": "2",
            "ALERTING__GROUP_BY": "cluster,group",
        },
        makes_files=True,
    )
    served = ConsoleServed(start, folder / "log", where=folder / "traps")
    try:
        yield Attacked(served.wait_ready(), pager, tokens_of(directory), folder)
    finally:
        served.kill()
        end_processes(directory)


@pytest.fixture
def attacked(
    service: Attacked,
    cluster: Sandbox,  # noqa: F811
    admin: SandboxAdmin,  # noqa: F811
    new_name: Callable[[str], str],  # noqa: F811
) -> Iterator[Attacked]:
    """Give the service; after the attack it has to answer, judge and deliver as before."""
    yield service
    kafka = Kafka.with_topic(cluster.bootstrap_servers, admin, new_name("attacked"))
    service.assert_well(kafka)
