import json
import subprocess
import sys

import numpy as np
import pytest

from metrack.estimators.comid import COMID
from metrack.experiments import reviews, reviews_trials
from metrack.experiments.reviews_summary import _pairs_to
from metrack.streams import load_reviews
from tests.streams.reviews_data import REAL, write_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("data"), n_reviews=240)


def test_everything_is_left_behind(folder, tmp_path, capsys):
    results = reviews.reproduce(folder, tmp_path / "new", n_runs=2, n_pairs=200, n_jobs=1)
    printed = capsys.readouterr().out
    for name in ("COMID", "COMID L1", "reinitialised", "non-adaptive", "sentiment to type"):
        assert name in printed
    assert [line.partition(":")[0] for line in printed.splitlines()[-4:]] == [
        "Figure",
        "Report",
        "Results",
        "Raw numbers",
    ]
    run = json.loads((tmp_path / "new" / "run.json").read_text())
    assert run["versions"]["numpy"]
    assert (tmp_path / "new" / "figure.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "new" / "report.html").read_text()
    assert "battery" in page  # a word that matters
    assert 'src="http' not in page  # one file, no server
    assert json.loads((tmp_path / "new" / "results.json").read_text()) == results
    rows = {(r["question"], r["features"], r["method"]): r for r in results["static"]}
    assert len(rows) == 14
    learned = rows["type", "unit", "COMID"]
    assert learned["error"]["2"] < 0.1  # four words tell
    assert set(learned["held_out"]) == {"2", "5"}
    assert 0.0 < rows["type", "unit", "COMID L1"]["nonzero_entries"] <= 1.0
    first = results["changes"]["four classes to type"]["methods"]["SADL"]["error"]
    assert len(first["mean"]) == len(results["steps"])
    assert results["steps"][0] == 0
    assert results["steps"][-1] == 200
    assert len(results["claims"]) == 5


def test_another_seed_has_other_numbers(folder, tmp_path):
    for seed in (0, 1):
        reviews.reproduce(folder, tmp_path / str(seed), 1, 100, seed, 1)
    numbers = [(tmp_path / str(seed) / "results.json").read_bytes() for seed in (0, 1)]
    assert numbers[0] != numbers[1]


def test_more_runs_go_on_from_fewer(folder, tmp_path):
    reviews.reproduce(folder, tmp_path / "grown", 1, 100, n_jobs=1)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "grown" / "raw").iterdir()}
    reviews.reproduce(folder, tmp_path / "grown", 2, 100, n_jobs=1)
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())
    reviews.reproduce(folder, tmp_path / "at once", 2, 100, n_jobs=1)
    numbers = [(tmp_path / name / "results.json").read_bytes() for name in ("grown", "at once")]
    assert numbers[0] == numbers[1]


def test_other_reviews_are_refused(folder, tmp_path):
    fewer = write_folder(tmp_path / "data", n_reviews=120)
    reviews.reproduce(folder, tmp_path / "out", 1, 100, n_jobs=1)
    with pytest.raises(ValueError, match="another reviews"):
        reviews.reproduce(fewer, tmp_path / "out", 1, 100, n_jobs=1)


def test_pairs_needed_are_those_of_the_first_evaluation_that_is_good_enough():
    steps, errors = np.array([0, 10, 20, 40]), np.array([0.5, 0.2, 0.1, 0.15])
    assert _pairs_to(steps, errors, 0.2) == 10
    assert _pairs_to(steps, errors, 0.6) == 0
    assert _pairs_to(steps, errors, 0.05) == np.inf


def test_no_pair_touches_the_half_that_is_judged(folder):
    corpus = load_reviews(folder)
    study = reviews_trials.Study(corpus, n_pairs=100)
    learner = COMID(n_components=2)
    _, labels = reviews_trials._learned(study, learner, "type", "unit", True, 1)
    n = corpus.counts.shape[0]
    assert learner.preprocessor.shape[0] + len(labels) == n
    everyone = reviews_trials._learned(study, learner, "type", "unit", False, 1)[1]
    assert len(everyone) == n
    rows = {row.tobytes() for row in learner.preprocessor.toarray()}
    assert len(rows) == n


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        ("none.npz", 1, "no reviews at none.npz"),
        ("text.npz", 2, "text.npz is cut short, or no npz file"),
    ],
)
def test_a_missing_or_wrong_file_ends_with_one_line(data, code, words, tmp_path):
    (tmp_path / "text.npz").write_text("hello")
    command = [sys.executable, "-m", "metrack.cli", "reproduce", "reviews", "--data", data]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == code
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "results").exists()


@pytest.mark.skipif(not REAL.exists(), reason="the reviews are not here")
@pytest.mark.parametrize(
    ("question", "half", "most"),
    [("type", False, 0.010), ("sentiment", False, 0.17), ("sentiment", True, 0.26)],
)
def test_errors_on_the_real_reviews(question, half, most):
    study = reviews_trials.Study(load_reviews(REAL))
    row = reviews_trials.embed(study, question, "unit", 2, half)
    assert row["held_out" if half else "error"]["2"] <= most
