"""The facts of a loss are fields of its evidence, of the same types."""

from __future__ import annotations

from typing import Any, Final, get_args, get_type_hints

from rules.loss import evidence_fields
from rules.loss.evidence_fields import LossEvidence
from service.api.losses.models import GroupBeyond, LossFacts, LossTransaction
from service.api.losses.views import OF_THE_LOSS
from service.views.model import Model

RESTORED: Final = {"restored_from", "restored_to", "restored_in_epoch"}
NO_FIELD: Final = (
    OF_THE_LOSS | RESTORED | {"never_observed", "proven_by", "unclean_elections_counted"}
)


def types_of(hints: dict[str, Any]) -> dict[str, set[str]]:
    return {
        name: {type_name(of) for of in get_args(hint) or (hint,)} - {"NoneType"}
        for name, hint in hints.items()
    }


def type_name(of: Any) -> str:
    """Return the name of a type, of a list's rows, or of the text that a time is in evidence."""
    name: str = (get_args(of) or (of,))[0].__name__
    return "str" if name == "datetime" else name


def fields_of(model: type[Model], *other: str) -> dict[str, set[str]]:
    fields = model.model_fields.items()
    return types_of({name: field.annotation for name, field in fields if name not in other})


def test_facts_and_rows_are_those_of_the_evidence() -> None:
    evidence = types_of(get_type_hints(LossEvidence))
    facts = fields_of(LossFacts, "reason", "more")
    assert facts == {name: of for name, of in evidence.items() if name not in NO_FIELD}
    assert evidence.keys() >= NO_FIELD
    for row in (GroupBeyond, LossTransaction):
        declared = getattr(evidence_fields, row.__name__)
        assert fields_of(row) == types_of(get_type_hints(declared))
