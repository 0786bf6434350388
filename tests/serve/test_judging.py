"""What judges have said: looked at again, corrected, compared and settled."""

import json
from urllib.parse import quote

import numpy as np
import pytest

import metrack
from metrack.serve.judging import _kappa
from tests.serve.servers import judged
from tests.serve.test_api import learn, refused

ITEMS = [f"i{i}" for i in range(12)]


@pytest.fixture
def shop(client, metric):
    client.put_items(metric, ITEMS, np.random.default_rng(0).normal(size=(12, 3)))
    return metric


def get(client, metric, what):
    return json.loads(client.request("GET", f"/v1/metrics/{metric}/{what}"))


def correct(client, metric, **body):
    data = json.dumps(body).encode()
    return json.loads(client.request("POST", f"/v1/metrics/{metric}/corrections", data))


def test_a_correction_is_learned_in_the_place_of_the_answer(client, metric):
    pairs, y = judged(60)
    learn(client, metric, pairs, y, judge="ann")
    receipt = correct(client, metric, sequence=7, y=int(-y[6]), judge="ann", id="again")
    assert receipt == {"accepted": 1, "duplicates": 0, "sequence": 61}
    assert correct(client, metric, sequence=7, y=int(-y[6]), id="again")["duplicates"] == 1
    assert client.describe(metric, 61, timeout=60)["pairs"] == 61
    tracker = metrack.MetricTracker(random_state=0).fit(pairs, y)
    tracker.forget(pairs[6:7])
    tracker.observe(pairs[6:7], [-y[6]])
    np.testing.assert_array_equal(client.distance(metric, pairs), tracker.pair_distance(pairs))
    refused(client, 409, "already, by 61", correct, client, metric, sequence=7, y=1)
    refused(client, 404, "no judgement 99", correct, client, metric, sequence=99, y=1)
    correct(client, metric, sequence=61, y=None, judge="ann")  # now unsure
    assert client.describe(metric, 62, timeout=60)["pairs"] == 61
    (found,) = get(client, metric, "judges")["judges"]
    assert (found["alike"] + found["not_alike"], found["unsure"]) == (59, 1)


def test_answers_are_looked_at_again_the_last_first(client, shop):
    ids = [("i0", "i1"), ("i2", "i3"), ("i4", "i5")]
    client.feedback(shop, ids, [1, -1, None], judge="ann & bob")
    client.feedback(shop, [("i6", "i7")], [1], judge="other")
    path = f"answers?judge={quote('ann & bob')}"
    found = get(client, shop, path)["answers"]
    assert [each["y"] for each in found] == [None, -1, 1]
    assert (found[0]["a"]["id"], found[0]["b"]["id"]) == ("i4", "i5")
    assert len(found[0]["a"]["vector"]) == 3
    correct(client, shop, sequence=2, y=1, judge="ann & bob")
    found = get(client, shop, path)["answers"]
    assert [(each["sequence"], each["corrects"]) for each in found] == [
        (5, 2),
        (3, None),
        (1, None),
    ]
    assert len(get(client, shop, f"{path}&before=3")["answers"]) == 1
    assert len(get(client, shop, "answers?n=100")["answers"]) == 4


def test_agreement_and_what_is_left_to_settle(client, shop):
    ids = list(zip(ITEMS[:8:2], ITEMS[1:8:2], strict=True))
    client.feedback(shop, ids, [1, 1, -1, -1], judge="ann")
    client.feedback(shop, [pair[::-1] for pair in ids], [1, -1, -1, -1], judge="bob")
    found = get(client, shop, "judges")
    # 3 of 4 the same; by chance 1/2 * 1/4 + 1/2 * 3/4 = 1/2 would be.
    assert found["agreement"] == [
        {"judges": ["ann", "bob"], "pairs": 4, "share": 0.75, "kappa": 0.5}
    ]
    assert found["disagreements"] == 1
    told = get(client, shop, "disagreements")
    assert told["total"] == 1
    (pair,) = told["pairs"]
    assert {pair["a"]["id"], pair["b"]["id"]} == set(ids[1])
    (wrong,) = (each["sequence"] for each in pair["answers"] if each["y"] == 1)
    correct(client, shop, sequence=wrong, y=-1, judge="cy")
    assert get(client, shop, "disagreements") == {"pairs": [], "total": 0}
    assert get(client, shop, "judges")["agreement"][0]["kappa"] == 0.5  # of first answers


def test_kappa_of_judges_who_always_say_the_same():
    assert _kappa([(1, 1)] * 5) == (1.0, None)
    assert _kappa([(1, -1), (-1, 1)]) == (0.0, -1.0)


def test_judges_get_pairs_that_others_have_answered(client, metric):
    points = np.random.default_rng(0).normal(size=(60, 3))
    ids = [f"i{i}" for i in range(60)]
    client.put_items(metric, ids, points)
    pairs = [(f"i{i}", f"i{i + 1}") for i in range(0, 60, 2)]
    client.feedback(metric, pairs, [1] * 30, judge="ann")
    body = {"n": 20, "judge": "bob", "seed": 0}
    for shared, most in ((1.0, 20), (0.0, 3)):
        client._json("PUT", client._path(metric), {"n_features": 3, "shared": shared})
        found = client._json("POST", client._path(metric, "suggest"), body)["pairs"]
        known = {frozenset(p) for p in pairs}
        n = sum(frozenset((each["a"]["id"], each["b"]["id"])) in known for each in found)
        assert n <= most
        assert (n == 20) == (shared == 1.0)


def test_what_a_metric_is_about_may_change_at_any_time(client, metric):
    learn(client, metric, *judged(5))
    path = client._path(metric)
    body = {"n_features": 3, "question": "Same film?", "instructions": "Remakes are not."}
    found = client._json("PUT", path, body)
    assert (found["question"], found["instructions"]) == ("Same film?", "Remakes are not.")
    assert client.describe(metric)["question"] == "Same film?"
    assert client.create(metric, 3)["question"] == "Same film?"  # nothing said, nothing changed
    wrong = {"n_features": 3, "shared": 2.0}
    refused(client, 422, "less than or equal to 1", client._json, "PUT", path, wrong)


def test_a_word_for_how_a_metric_does(client, metric):
    assert client.describe(metric)["health"]["level"] == "new"
    described = learn(client, metric, *judged(400))
    assert described["health"]["level"] == "watch"  # a change, just now
    assert described["accuracy"] > 0.5
    assert sum(n for _, n in described["hours"]) == 400
