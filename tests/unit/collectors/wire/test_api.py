"""Which version of a request both sides know."""

from __future__ import annotations

import pytest

from collectors.wire import api as all_apis
from collectors.wire.api import Api, VersionRange

OURS = Api(key=2, name="ListOffsets", oldest=6, newest=10, since="2.8")


@pytest.mark.parametrize(
    ("oldest", "newest", "usable"),
    [
        pytest.param(6, 10, 10, id="the-same"),
        pytest.param(0, 99, 10, id="a-newer-broker"),
        pytest.param(1, 8, 8, id="an-older-broker"),
        pytest.param(1, 6, 6, id="just-new-enough"),
        pytest.param(10, 12, 10, id="just-old-enough"),
        pytest.param(0, 5, None, id="too-old"),
        pytest.param(11, 12, None, id="too-new"),
    ],
)
def test_the_newest_common_version_is_used(oldest: int, newest: int, usable: int | None) -> None:
    assert VersionRange(oldest, newest).usable(OURS) == usable


def test_no_two_requests_share_a_key_or_a_name() -> None:
    apis = [value for value in vars(all_apis).values() if isinstance(value, Api)]
    assert len({found.key for found in apis}) == len({found.name for found in apis}) == len(apis)
    assert all(found.oldest <= found.newest for found in apis)
