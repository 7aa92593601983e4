"""What is said of this machine, the database, receivers and a running service."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rules.version import VERSION
from service.alerting.receivers.receiver_url import ReceiverUrl
from service.alerting.receivers.receivers import WebhookReceiver
from service.alerting.sending.address_guard import AddressGuard
from service.alerting.sending.calls import UnknownNameError
from service.cli.doctor import machine
from service.cli.doctor.database import role_check, schema_check
from service.cli.doctor.receivers import check_receiver
from service.cli.doctor.running import status_checks
from service.runtime.open_files import FILES
from service.storage.database.running_role import Privileges
from service.storage.database.schema import SchemaCheck, SchemaState
from service.views.doctor import CheckState

SECRET = "T00/B00/key"  # noqa: S105 - what must not be shown


def test_a_file_where_the_data_directory_belongs_is_missing(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("x", encoding="ascii")
    assert machine.data_directory(place).state is CheckState.MISSING
    assert "will be made" in machine.data_directory(tmp_path / "new").summary
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("hard", "state"),
    [
        (FILES, CheckState.OK),
        (resource.RLIM_INFINITY, CheckState.OK),
        (FILES - 1, CheckState.WARN),
    ],
)
def test_the_limit_of_open_files(hard: int, state: CheckState) -> None:
    assert machine.open_files(hard).state is state


@pytest.mark.parametrize(
    ("synchronised", "state"),
    [(True, CheckState.OK), (False, CheckState.WARN), (None, CheckState.WARN)],
)
def test_a_clock_that_does_not_say_is_no_synchronised_one(
    synchronised: bool | None,  # noqa: FBT001 - what the kernel says
    state: CheckState,
) -> None:
    assert machine.clock(synchronised).state is state


@pytest.mark.parametrize(
    ("state", "drift", "expected", "todo"),
    [
        (SchemaState.AT_HEAD, (), CheckState.OK, ""),
        (SchemaState.AT_HEAD, ("a column",), CheckState.MISSING, "a column"),
        (SchemaState.BEHIND, (), CheckState.MISSING, "tidemark db upgrade"),
        (SchemaState.NEWER, (), CheckState.MISSING, "newer Tidemark"),
    ],
)
def test_a_schema_that_is_not_ours_says_what_to_do(
    state: SchemaState, drift: tuple[str, ...], expected: CheckState, todo: str
) -> None:
    found = SchemaCheck(state=state, revision="0013", head="0014", drift=drift)
    check = schema_check(found)
    assert check.state is expected
    assert todo in (check.detail or "")


def test_what_a_role_lacks_is_missing() -> None:
    lacks = Privileges(role="reader", may_upgrade=False, missing=("INSERT on finding",))
    assert role_check(lacks).state is CheckState.MISSING
    assert "tidemark db grant reader --service" in (role_check(lacks).detail or "")
    whole = Privileges(role="tidemark", may_upgrade=False, missing=())
    assert role_check(whole).state is CheckState.OK


@pytest.mark.parametrize(
    ("addresses", "state"),
    [
        pytest.param(["93.184.216.34"], CheckState.OK, id="public"),
        pytest.param(["93.184.216.34", "10.0.0.1"], CheckState.MISSING, id="one-is-private"),
        pytest.param([], CheckState.MISSING, id="unknown-name"),
    ],
)
def test_a_receiver_is_resolved_and_its_path_never_shown(
    addresses: Sequence[str], state: CheckState
) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        assert (host, port) == ("hooks.example", 443)
        if not addresses:
            raise UnknownNameError(f"{host} has no address")
        return addresses

    receiver = WebhookReceiver(name="pager", url=ReceiverUrl(f"https://hooks.example/{SECRET}"))
    check = asyncio.run(check_receiver("pager", receiver, AddressGuard.of(()), resolve))
    assert check.state is state
    assert SECRET not in check.model_dump_json()


@pytest.mark.parametrize(
    ("last", "state"),
    [
        pytest.param({}, CheckState.OK, id="recent"),
        pytest.param({"outcome": "gaps"}, CheckState.UNKNOWN, id="gaps"),
        pytest.param({"age_seconds": 900.0}, CheckState.UNKNOWN, id="late"),
        pytest.param({"is_current": False}, CheckState.UNKNOWN, id="old"),
        pytest.param({"age_seconds": None}, CheckState.UNKNOWN, id="none-yet"),
    ],
)
def test_a_round_that_did_not_see_everything_or_is_late_is_unknown(
    last: dict[str, Any], state: CheckState
) -> None:
    recent = {"outcome": "complete", "age_seconds": 9.0, "interval_seconds": 15.0, "error": None}
    status = {
        "version": VERSION,
        "is_current": last.get("is_current", True),
        "round": {**recent, **last},
        "gaps_by_cause": {"timeout": 3} if last.get("outcome") == "gaps" else {},
        "storage": {"state": "stored", "error": None},
    }
    service, round_, storage = status_checks(status)
    assert (service.state, round_.state, storage.state) == (CheckState.OK, state, CheckState.OK)
    assert (round_.detail == "Not everything was seen: 3 timeout.") == ("outcome" in last)


def test_another_version_is_only_a_warning() -> None:
    first, *others = status_checks({"version": "99.0"})  # fields of another version may be absent
    assert first.state is CheckState.WARN
    assert {check.state for check in others} == {CheckState.UNKNOWN}
