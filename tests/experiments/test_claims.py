import json
import sys

import pytest

from metrack import cli
from metrack.experiments import claims, runner
from metrack.experiments.report import VERDICTS
from metrack.experiments.verdicts import MEASURES, PUBLISHED
from tests.figures import figures

LENGTHS, SPEEDS = (12, 30), (0.5, 1.0)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    out = tmp_path_factory.mktemp("claims")
    return out, claims.reproduce(out, 3, lengths=LENGTHS, speeds=SPEEDS, n_jobs=1)


def test_every_cell_has_every_claim_with_its_margin(study):
    out, results = study
    assert json.loads((out / "results.json").read_text()) == results
    cells = results["cells"]
    assert [(c["n_pairs"], c["speed"]) for c in cells] == [(12, 0.5), (12, 1), (30, 0.5), (30, 1)]
    assert [c["segment"] for c in cells] == [2, 2, 5, 5]
    assert cells[0]["drift"] == pytest.approx(0.015)
    for cell in cells:
        assert [each["source"] for each in cell["claims"]] == ["paper"] * 6 + ["aim"] * 4
        for claim in cell["claims"]:
            low, mean, high = (claim["margin"][name] for name in ("low", "mean", "high"))
            assert low <= mean <= high
            assert claim["held"] in VERDICTS
        for measure, sign in zip(MEASURES, (1, -1), strict=True):
            means = {name: each[measure]["mean"] for name, each in cell["methods"].items()}
            assert min(sign * m for m in means.values()) == sign * means[cell["best"][measure]]


def test_rates_are_chosen_in_every_cell_and_lie_inside(study):
    out, results = study
    tried = json.loads((out / "tuning.json").read_text())["scores"]
    assert all(len(each) == claims.N_TUNING for each in tried.values())
    for cell in results["cells"]:
        for method, (free, _) in claims.FREE.items():
            stretch = claims.ALONG.get(method, "all")
            speed = 0 if stretch == "static" else cell["speed"]
            here = f"{cell['n_pairs']} pairs, speed {speed:g}, {stretch}: {method} "
            values = [json.loads(k[len(here) :])[free] for k in tried if k.startswith(here)]
            for measure in ("knn_error", "nmi"):
                assert min(values) < cell["settings"][method][measure][free] < max(values)


def test_the_map_shows_a_panel_for_each_claim_and_measure(study):
    out, results = study
    assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")
    [(traces, layout)] = figures((out / "report.html").read_text(encoding="utf-8"))
    names = [each["name"] for each in results["cells"][0]["claims"]]
    assert [each["text"].split(" (")[0] for each in layout["annotations"]][: len(names)] == [
        name.split(" (")[0] for name in names
    ]
    assert len(traces) == len(names) + len(MEASURES)
    assert set(PUBLISHED) < set(results["methods"])


def test_trials_of_a_cell_are_its_own():
    """Cells take turns; each of their trials is the same as of the cell alone."""
    cells = [claims.Study(("lmnn",), n_pairs=n) for n in (12, 30)]
    found = claims.run_cell(cells, 3)
    alone = claims.trial_columns(cells[1], 1)
    assert all((found[name] == alone[name]).all() for name in alone)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--trials", "0"], "--trials"),
        (["--length", "3"], "n_pairs is 3"),
        (["--speed", "-1"], "--speed"),
        (["--out", "file/sub"], "cannot write in file/sub"),
        (["--cluster", "127.0.0.1:1"], "no Dask scheduler answers"),
    ],
)
def test_a_bad_argument_ends_at_once(args, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    monkeypatch.setattr(sys, "argv", ["metrack", "reproduce", "claims", *args])
    monkeypatch.setattr(runner.TrialStore, "add", None)  # no trial is to be run
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert words in capsys.readouterr().err
