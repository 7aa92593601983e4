"""What brokers and controllers say of replicas that may lack records, in lines that the search for losses does not read.

Source: `PartitionChangeBuilder` of Kafka 3.7 to 4.4, `ReplicaFetcherThread` up to 1.0.
"""

from __future__ import annotations

from typing import Final

from rules.exceptions.meaning import NOBODY, Meaning, Next, Records, Table, always, table

UNCLEAN: Final = Meaning(
    id="unclean_election",
    title="a replica that was not in sync was made leader",
    explanation="Records that it does not have are cut from the other replicas when they follow it.",
    java=NOBODY,
    records=Records.UNKNOWN,
    condition="Lost if the new leader lacks acknowledged records; neither if it had all of them, or they were not acknowledged.",
    action="Keep the former leader's disk, before it is started again: it may hold the only copy. Follow the steps of tidemark loss.",
    check="The end of the former leader epoch against the high watermark that was known before.",
    next=(Next.LOSS, Next.PARTITION),
)
TRUNCATION_REFUSED: Final = Meaning(
    id="truncation_refused",
    title="a broker stopped itself, because its replica has more than the leader's",
    explanation="It would have to cut records that the leader does not have, and unclean elections are off.",
    java=NOBODY,
    records=Records.UNKNOWN,
    condition="Lost are the acknowledged records among those that the leader lacks, unless this replica's copy is used.",
    action="Keep the disk of this broker; compare both logs, and elect the replica that has the acknowledged records.",
    check="Both offsets in the line; leader changes of the partition before.",
    next=(Next.LOSS, Next.PARTITION),
)

REPLICAS: Final[Table] = table(
    (("_UNCLEAN_ELECTION",), always(UNCLEAN)),
    (("_TRUNCATION_REFUSED",), always(TRUNCATION_REFUSED)),
)
