"""What `kafka-consumer-groups` says of a group in words, mostly on stderr.

A sentence is given without white space, see `pasting.py`.
"""

from __future__ import annotations

import re
from typing import Final

from rules.facts.tool_output import GroupSentence

BEGIN: Final = re.compile(r"(?:Error: |Warning: )?(?:Consumer|Share|Streams) group '")
SENTENCE: Final = re.compile(
    r"(?:Error:|Warning:)?(?:Consumer|Share|Streams)group'(?P<group>.{1,500}?)'"
    r"(?P<words>hasnoactivemembers|isrebalancing|doesnotexist|isdead)\.?"
)
STATES: Final = {
    "hasnoactivemembers": "Empty",
    "isrebalancing": "PreparingRebalance",
    "doesnotexist": "Dead",
    "isdead": "Dead",
}


def sentence_of(match: re.Match[str], line: int) -> GroupSentence:
    """Return the group and the state that the words stand for."""
    return GroupSentence(line=line, group=match["group"], state=STATES[match["words"]])
