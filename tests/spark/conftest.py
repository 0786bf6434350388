"""Tests of `metrack.spark` run where PySpark is installed: by `make test-spark` alone."""

import importlib.util
import os
import sys

import pytest

if importlib.util.find_spec("pyspark") is None:
    collect_ignore_glob = ["*.py"]

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers take what is in PATH
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.ui.enabled", False)
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
