"""Hypothesis profiles: few examples, the same on every machine, and many new ones on demand.

`make property` runs the first with every build; `make property-long` draws afresh, to find more.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "tidemark",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=24,
    suppress_health_check=[HealthCheck.too_slow],  # a busy machine is no finding
)
settings.register_profile(
    "long", settings.get_profile("tidemark"), derandomize=False, max_examples=1000
)
settings.load_profile(os.environ.get("PROPERTY_PROFILE", "tidemark"))
