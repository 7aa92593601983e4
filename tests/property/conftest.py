"""The one Hypothesis profile: the same examples on every machine, no deadline, no files."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "tidemark",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],  # a busy machine is no finding
)
settings.load_profile("tidemark")
