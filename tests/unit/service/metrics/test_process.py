"""How seldom a service searches for garbage."""

from __future__ import annotations

import gc

from service.metrics.process import SELDOM, seldom_collected


def test_garbage_is_observed_for_seldom_as_long_as_the_service_runs() -> None:
    usual = gc.get_threshold()
    with seldom_collected():
        assert gc.get_threshold() == SELDOM
        assert gc.isenabled()
    assert gc.get_threshold() == usual
