"""Which files `down` may remove."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from service.sandbox.cluster.layout import is_ours


@pytest.mark.parametrize(
    "path",
    [
        "sandbox.json",
        "sandbox.json.new",
        "node-1/kafka.properties",
        "node-1/output.log",
        "node-100/logs/controller.log.2026-11-21-14",
        "node-2/logs/server.log",
        "node-2/logs/hs_err_pid4711.log",
        "node-2/tmp/libzstd-jni-1.so",
        "node-1/data/.lock",
        "node-1/data/meta.properties",
        "node-1/data/bootstrap.checkpoint",
        "node-1/data/recovery-point-offset-checkpoint",
        "node-1/data/replication-offset-checkpoint.tmp",
        "node-1/data/orders.eu-0/00000000000000000000.log",
        "node-1/data/orders-0/00000000000000000042.snapshot",
        "node-1/data/orders-0/00000000000000000042.txnindex.deleted",
        "node-1/data/orders-0/leader-epoch-checkpoint",
        "node-1/data/orders-0/partition.metadata",
        "node-1/data/y-0.2f0dcc51-delete/00000000000000000000.timeindex",
        "node-100/data/__cluster_metadata-0/quorum-state",
        "node-100/data/__cluster_metadata-0/00000000000000000050-0000000001.checkpoint",
    ],
)
def test_what_the_sandbox_and_its_brokers_write_is_ours(path: str) -> None:
    assert is_ours(PurePath(path))


@pytest.mark.parametrize(
    "path",
    [
        "notes.txt",
        "node-1/notes.txt",
        "node-one/kafka.properties",
        "copy/orders-0/00000000000000000000.log",
        "node-1/logs/findings.md",
        "node-1/data/orders-0/dump.txt",
        "node-1/data/README",
        "server.log",
    ],
)
def test_what_somebody_else_laid_there_is_not_ours(path: str) -> None:
    assert not is_ours(PurePath(path))
