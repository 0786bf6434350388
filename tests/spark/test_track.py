"""Keys on Spark: what is learned is what trackers one by one learn; nothing stops a query."""

import os

import numpy as np
import pytest
from pyspark.sql import functions as F

import metrack
from metrack import spark as on_spark
from metrack.estimators.states.persistence import dump
from tests.spark.feedback import SCHEMA, alone, feedback, pairs_of, write

N_KEYS, N_PAIRS = 5, 60


@pytest.fixture(scope="module")
def rows():
    return feedback(N_KEYS, N_PAIRS)


def run(spark, rows, folder, n_files=3, first=0, **options):
    """The events of a stream of files, each of them a micro-batch; they are numbered."""
    source, out = folder / "source", folder / "events"
    source.mkdir(parents=True, exist_ok=True)
    share = -(-len(rows) // n_files)
    for i in range(n_files):
        file = source / f"{first + i}.json"
        write(rows[i * share : (i + 1) * share], file)
        os.utime(file, (first + i, first + i))  # the order in which Spark takes them
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(source))
    query = (
        on_spark.track(stream, **options)
        .writeStream.option("path", str(out))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return spark.read.parquet(str(out))


def states(events):
    return {row.metric: bytes(row.state) for row in on_spark.latest(events).collect()}


@pytest.mark.parametrize("partitions", [2, 7])
def test_stream_table_and_single_trackers_agree_bit_for_bit(spark, rows, tmp_path, partitions):
    expected = alone(rows)
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    try:
        events = run(spark, rows, tmp_path)
        assert states(events) == expected
        assert states(on_spark.track(spark.createDataFrame(rows, SCHEMA))) == expected
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", 2)
    found = events.orderBy("metric", "version").collect()
    assert len(found) == 3 * N_KEYS
    assert [row.version for row in found[:3]] == [20, 40, 60]
    assert all(row.pairs == 20 and row.bad == [] and row.repeated == 0 for row in found)
    assert all(row.state_bytes >= len(row.state) for row in found)


def test_new_files_are_learned_where_the_last_run_stopped(spark, rows, tmp_path):
    half = len(rows) // 2
    run(spark, rows[:half], tmp_path, n_files=1)
    again = rows[half - 2 * N_KEYS :]  # some come again
    events = run(spark, again, tmp_path, n_files=1, first=1)
    assert states(events) == alone(rows)
    assert {row.repeated for row in events.where("version = 60").collect()} == {2}


def test_bad_rows_go_aside_and_no_query_dies(spark, rows, tmp_path):
    def changed(at, **values):
        row = dict(zip(("metric", "sequence", "x", "z", "y"), rows[at], strict=True)) | values
        bad[at] = tuple(row.values())

    bad = list(rows)
    changed(7, x=[1.0, None, 2.0, 3.0])  # pandas knows it as NaN
    changed(8, x=[1.0, 2.0])
    changed(9, x=None, z=None)
    changed(10, y=7)
    changed(11, metric=None)
    changed(12, sequence=None)
    bad.append((*rows[0][:2], [9.0] * 4, [8.0] * 4, 1))  # number 0 again, with other values
    good = [row for i, row in enumerate(rows) if i not in range(7, 13)]
    events = run(spark, bad, tmp_path, n_files=4)
    assert states(events) == alone(good)
    aside = {row.why: row for row in on_spark.bad_rows(events).collect()}
    assert set(aside) == {
        "x[1] is NaN",
        "x has 2 numbers, expected 4",
        "x is not a list of numbers: None",
        "label '7'; labels are +1/-1, 1/0, true/false or same/different",
        "metric is empty",
        "sequence is empty",
        "sequence 0 was learned before, with other values",
    }
    assert aside["x[1] is NaN"].metric == "key-2"
    assert aside["x[1] is NaN"].sequence == 1
    assert aside["metric is empty"].metric is None
    table = on_spark.track(spark.createDataFrame(bad[:-1], SCHEMA))
    assert states(table) == alone(good)
    assert {row.why for row in on_spark.bad_rows(table).collect()} == set(aside) - {
        "sequence 0 was learned before, with other values"
    }


def test_keys_of_other_types_and_names(spark, rows):
    numbered = [(int(row[0][4:]), *row[1:]) for row in rows] + [(None, *rows[0][1:])]
    df = spark.createDataFrame(numbered, SCHEMA.replace("metric string", "tenant int"))
    df = df.withColumnRenamed("sequence", "offset").withColumn("y", F.col("y") == 1)
    events = on_spark.track(df, "tenant", order="offset")
    found = on_spark.latest(events, "tenant").collect()
    expected = alone(rows)
    assert {f"key-{row.tenant}": bytes(row.state) for row in found} == expected
    (aside,) = on_spark.bad_rows(events, "tenant").collect()
    assert (aside.tenant, aside.why) == (None, "tenant is empty")


def test_settings_and_a_shared_start(spark, rows):
    df = spark.createDataFrame(rows, SCHEMA)
    settings = {"n_components": 2, "output": "sample", "random_state": 3}
    expected = alone(rows, lambda: metrack.SADL(**settings))
    assert states(on_spark.track(df, settings=settings, estimator="SADL")) == expected
    assert states(on_spark.track(df, estimator="LEGO")) == alone(rows, metrack.LEGO)
    pairs, y = pairs_of(9, 100)
    start = metrack.SADL(rho=0.2).fit(pairs, y)
    expected = alone(rows, lambda: metrack.load(dump(start)))
    assert states(on_spark.track(df, start=start)) == expected


def test_pairs_of_ids(spark, tmp_path):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20, 3)).astype(np.float32)
    items = spark.createDataFrame(
        [(f"item-{i}", point.tolist()) for i, point in enumerate(points)],
        "id string, embedding array<float>",
    )
    ids = rng.integers(20, size=(40, 2))
    y = np.where(np.abs(points[ids[:, 0], 0] - points[ids[:, 1], 0]) < 1, 1, -1)
    rows = [("k", i, f"item-{a}", f"item-{b}", int(y[i])) for i, (a, b) in enumerate(ids)]
    rows[5] = ("k", 5, "item-0", "item-99", 1)
    kept = np.delete(np.arange(40), 5)
    expected = metrack.MetricTracker().fit(points[ids[kept]].astype(float), y[kept])
    schema = "metric string, sequence bigint, a string, b string, y int"
    table = spark.createDataFrame(rows, schema)
    table.coalesce(1).write.parquet(str(tmp_path / "source"))
    stream = spark.readStream.schema(schema).parquet(str(tmp_path / "source"))
    query = (
        on_spark.track(stream, items=items)
        .writeStream.option("path", str(tmp_path / "events"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    for events in (
        on_spark.track(table, items=items),
        spark.read.parquet(str(tmp_path / "events")),
    ):
        assert states(events) == {"k": dump(expected)}
        (bad,) = on_spark.bad_rows(events).collect()
        assert (bad.sequence, bad.why) == (5, "b = 'item-99' is not an item")


def test_what_reads_states(spark, rows):
    df = spark.createDataFrame(rows, SCHEMA)
    events = on_spark.track(df.where("metric != 'key-4'")).persist()
    trackers = {key: metrack.load(state) for key, state in states(events).items()}
    odd = [
        ("key-0", 1000, [1.0, 2.0], [1.0, 2.0], 1),
        ("key-0", 1001, None, [1.0] * 4, 1),
        ("key-0", 1002, [float("nan")] * 4, [1.0] * 4, 1),
    ]
    asked = spark.createDataFrame(rows + odd, SCHEMA).withColumn("big", F.lit(2**60 + 1))
    asked = asked.withColumn("big", F.when(F.col("sequence") > 0, F.col("big")))
    embedded = on_spark.transform(asked, events).collect()
    judged = on_spark.distance(asked, on_spark.latest(events)).collect()
    assert len(embedded) == len(judged) == len(rows) + 3
    for point, pair in zip(embedded, judged, strict=True):
        assert point.big == (2**60 + 1 if point.sequence > 0 else None)  # no detour by floats
        if point.metric == "key-4" or point.sequence >= 1000:
            assert point.embedding is None
        else:
            expected = trackers[point.metric].transform([point.x])[0]
            np.testing.assert_allclose(point.embedding, expected, rtol=1e-12, atol=1e-12)
        if pair.metric == "key-4" or pair.sequence >= 1000:
            assert (pair.distance, pair.alike) == (None, None)
        else:
            tracker = trackers[pair.metric]
            expected = tracker.pair_distance([[pair.x, pair.z]])[0]
            assert pair.distance == pytest.approx(expected, rel=1e-12)
            assert pair.alike == (1 if pair.distance <= tracker.threshold_ else -1)
    shared = metrack.COMID().fit(*pairs_of(9, 50))
    started = on_spark.distance(asked.where("metric = 'key-4'"), events, start=shared).collect()
    assert len(started) == N_PAIRS
    for pair in started:
        expected = shared.pair_distance([[pair.x, pair.z]])[0]
        assert pair.distance == pytest.approx(expected, rel=1e-12)
    events.unpersist()


WRONG = {
    "no key": ({}, {"key": "tenant"}, "feedback has no column 'tenant'; it has metric, sequence"),
    "no sequence": ({}, {"order": "offset"}, "no column 'offset'"),
    "no points": ({"x": None}, {}, "no column 'x'"),
    "no labels": ({"y": None}, {}, "no column 'y'"),
    "text": ({"x": "string"}, {}, "x is string; it must be an array of numbers"),
    "texts": ({"z": "array<string>"}, {}, r"z is array<string>; it must be an array of numbers"),
    "sequence": ({"sequence": "timestamp"}, {}, "sequence is timestamp; .*unix_micros"),
    "key": ({"metric": "double"}, {}, "metric is double; a key is text"),
    "labels": ({"y": "array<int>"}, {}, "y is array<int>; labels are"),
    "estimator": ({}, {"estimator": "LMNN"}, "estimator is 'LMNN'; there are MetricTracker"),
    "setting": ({}, {"settings": {"lambda": 1}}, "lambda"),
    "value": ({}, {"settings": {"loss": "cubic"}}, "loss"),
    "items": ({}, {"settings": {"preprocessor": np.eye(2)}}, "pass items"),
    "generator": ({}, {"settings": {"random_state": np.random.RandomState(0)}}, "random_state"),
    "draws": (
        {},
        {"settings": {"output": "sample"}, "estimator": "SADL"},
        "output='sample' draws: give random_state",
    ),
    "often": ({}, {"states_every": 0}, "states_every is 0"),
    "most": ({}, {"max_features": 0}, "max_features is 0"),
    "start": ({}, {"start": metrack.OASIS()}, "start is a OASIS, which learns no pairs"),
    "both": ({}, {"start": metrack.COMID(), "estimator": "COMID"}, "start brings its own"),
    "clash": ({"state": "string"}, {"key": "state"}, "key 'state' is the name"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_refused_before_anything_runs(spark, name):
    columns, options, message = WRONG[name]
    columns = dict(each.split(" ") for each in SCHEMA.split(", ")) | columns
    schema = ", ".join(f"{name} {kind}" for name, kind in columns.items() if kind)
    table = spark.createDataFrame([], schema)
    stream = spark.readStream.schema(schema).json(".")
    for df in (table, stream):
        if name == "often" and df is table:
            continue  # it is for streams
        with pytest.raises((ValueError, TypeError), match=message):
            on_spark.track(df, **options)


def test_readers_refuse_what_they_cannot_use(spark, rows):
    df = spark.createDataFrame(rows[:2], SCHEMA)
    events = on_spark.track(df)
    with pytest.raises(ValueError, match="states has no column 'version'"):
        on_spark.latest(df)
    with pytest.raises(ValueError, match="there is a column 'embedding' already"):
        on_spark.transform(df.withColumn("embedding", F.lit(1)), events)
    with pytest.raises(ValueError, match="df has no column 'z'"):
        on_spark.distance(df.drop("z"), events)
    with pytest.raises(ValueError, match="in foreachBatch"):
        on_spark.transform(spark.readStream.schema(SCHEMA).json("."), events)
    with pytest.raises(ValueError, match="events has no column 'bad'"):
        on_spark.bad_rows(df)
