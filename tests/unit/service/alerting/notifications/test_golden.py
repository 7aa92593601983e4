"""What is sent is what is committed, to the byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from service.alerting.notifications.channels import body_of
from service.alerting.notifications.notification import json_bytes
from service.alerting.receivers.receivers import Receiver
from tests.unit.service.alerting.notifications.given import EVERY, GOLDEN, notification, pages, told


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.stem)
def test_the_committed_bodies_are_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == pages()[path], "run `make golden`"


def test_no_committed_body_is_left_over() -> None:
    assert set(GOLDEN.iterdir()) == set(pages())


@pytest.mark.parametrize("receiver", EVERY.values(), ids=EVERY.keys())
def test_a_body_has_one_text(receiver: Receiver) -> None:
    for one in told().values():
        body = body_of(receiver, one)
        assert body == body_of(receiver, one)
        assert body == json_bytes(json.loads(body))


@pytest.mark.parametrize("receiver", EVERY.values(), ids=EVERY.keys())
def test_the_order_of_labels_changes_no_body(receiver: Receiver) -> None:
    one = notification()
    turned = notification(group_labels=dict(sorted(one.group_labels.items(), reverse=True)))
    assert body_of(receiver, one) == body_of(receiver, turned)
