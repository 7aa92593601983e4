"""Answers come back from their file as they went in."""

from __future__ import annotations

from tests.pictures.answers import Answer, Answers, Mark, Rows, Series, decode, encode


def test_answers_are_read_as_they_were_written() -> None:
    series = Series(labels={"topic": "orders"}, points=((1.0, 2.0), (3.0, 4.5)))
    rows = Rows(columns=("rule", "at"), times=("at",), rows=(("a", 1.5), (None, None)))
    answers = Answers(
        start=1.0,
        end=3.0,
        chosen={"Cluster": "All"},
        panels={"1": {"A": Answer(series=(series,)), "B": Answer(rows=rows), "C": Answer()}},
        marks=(Mark(color="orange", step=60, series=(series,)),),
    )
    assert decode(encode(answers)) == answers
