"""How a feature level is judged: against what the brokers' release supports."""

from __future__ import annotations

from dataclasses import dataclass

from rules.posture.judging import FewCheck, Judged
from rules.posture.line import PostureJudgement, PostureReason, Shown, Unseen
from rules.posture.subject import unseen
from rules.verdict import Verdict


class Why(PostureReason):
    """Reasons of the checks of features."""

    IN_FORCE = "in_force"
    BELOW_SUPPORTED = "below_supported"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureCheck:
    """A check of one feature; `enough`: the level that is right, absent: the highest that is supported."""

    base: FewCheck
    enough: int | None = None

    def judge(self) -> PostureJudgement:
        """Judge the level in force in the cluster."""
        base, configs = self.base, self.base.subject.configs
        feature, features = base.check.setting, configs.features
        level = None if features is None else features.level(feature)
        highest = (0, 0) if features is None else features.supported.get(feature, (0, 0))
        right = highest[1] if self.enough is None else self.enough
        shown = Shown(value=None if level is None else str(level), words={"right": right})
        return base.judge([base.line(base.subject.cluster, self._judge(level, right), shown)])

    def _judge(self, level: int | None, right: int) -> Judged:
        configs = self.base.subject.configs
        if configs.failed_features is not None:
            return Verdict.UNKNOWN, unseen(configs.failed_features)
        features = configs.features
        if features is None or features.epoch is None:
            return Verdict.UNKNOWN, Unseen.NOT_READ
        highest = features.supported.get(self.base.check.setting, (0, right))[1]
        if level is None or level < right > highest:
            return Verdict.UNKNOWN, Unseen.NOT_IN_RELEASE
        is_right = level >= right
        return (Verdict.OK, Why.IN_FORCE) if is_right else (Verdict.BREACH, Why.BELOW_SUPPORTED)
