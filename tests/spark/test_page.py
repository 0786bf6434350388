"""The page on Spark runs as it stands, in a process of its own session."""

from pathlib import Path

from tests.test_examples import SPARK, run_page


def test_examples_run(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_page(SPARK, capsys)
    assert (Path("events") / "_spark_metadata").exists()
