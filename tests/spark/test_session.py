"""What our own settings of Spark do in the processes of tasks."""

from __future__ import annotations

import os
import socket
import struct

from pyspark.sql import SparkSession

from spark.session import DEFAULTS


def test_the_processes_of_tasks_keep_the_memory_of_their_arrays(session: SparkSession) -> None:
    names = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")
    one = session.sparkContext.parallelize([0], 1)
    (found,) = one.map(lambda _: [os.environ.get(name) for name in names]).collect()
    assert found == [DEFAULTS[f"spark.executorEnv.{name}"] for name in names]


def test_a_local_spark_answers_nobody_without_its_secret(session: SparkSession) -> None:
    """Send a request as another user of this machine could; source: Spark's RpcRequest and RpcFailure."""
    body = b"a request"
    request = struct.pack(">qbqi", 21 + len(body), 3, 7, len(body)) + body
    port = int(session.sparkContext.getConf().get("spark.driver.port", ""))
    with socket.create_connection(("127.0.0.1", port), timeout=60) as link:
        link.sendall(request)
        stream = link.makefile("rb")
        size, kind, number, _ = struct.unpack(">qbqi", stream.read(21))
        answer = stream.read(size - 21)
    assert (kind, number) == (5, 7)
    assert b"Expected SaslMessage" in answer
    assert b"RequestMessage" not in answer, "it was read before who sent it was known"
