"""How settings are listed that only a client knows: UNKNOWN, with the line of configuration to compare."""

from __future__ import annotations

from dataclasses import dataclass

from rules.posture.judging import FewCheck
from rules.posture.line import (
    Advice,
    PostureCheck,
    PostureJudgement,
    PostureLine,
    PostureReason,
    Shown,
    Unseen,
    judgement_of_lines,
)
from rules.posture.subject import PostureSubject
from rules.verdict import Verdict


class Why(PostureReason):
    """Reasons of the checks of clients, beside those of what is not seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAdvice:
    """What a setting of clients means for a person."""

    clients: str  # whose setting it is: producers, or consumers
    consequence: str
    fix: str  # the line of configuration that is right

    @property
    def advice(self) -> dict[PostureReason, Advice]:
        """The advice of what cannot be seen."""
        return {Unseen.CLIENT_ONLY: Advice(consequence=self.consequence, fix=self.fix)}


def judge_unseen(
    check: PostureCheck, subject: PostureSubject, client: ClientAdvice
) -> PostureJudgement:
    """Return one line for all clients."""
    return judgement_of_lines(check, [unseen_line(check, subject, client)])


def unseen_line(check: PostureCheck, subject: PostureSubject, client: ClientAdvice) -> PostureLine:
    """Return the line of all clients of which nothing can be seen from here."""
    base = FewCheck(check=check, subject=subject, advice=client.advice, is_mild=False)
    return base.line(client.clients, (Verdict.UNKNOWN, Unseen.CLIENT_ONLY), Shown())
