"""Only names change with formats 4 and 5: what a checkpoint says of topics and sources stays."""

from __future__ import annotations

from service.storage.formats.arrays import read_text, text_of
from service.storage.formats.former_names import present_names


def test_reasons_and_keys_are_renamed_and_topics_are_not() -> None:
    row = {
        "name": ["look_failed", 0],
        "told": {"reason": "look_failed", "told_us": 5},
        "refusals": [{"source": "change_not_told", "proof": "change_not_told"}],
    }
    [(name, array)] = present_names({"sequences": text_of({"open": [row]})}).items()
    assert name == "sequences"
    assert read_text(array) == {
        "open": [
            {
                "name": ["look_failed", 0],
                "reported": {"reason": "scan_failed", "reported_us": 5},
                "rejections": [{"source": "change_not_told", "proof": "change_not_reported"}],
            }
        ]
    }


def test_columns_of_observations_are_renamed() -> None:
    arrays = {f"look.{name}": text_of(name) for name in ("leader", "context.isr_told_us")}
    assert sorted(present_names(arrays)) == [
        "observation.context.isr_reported_us",
        "observation.leader",
    ]
