import functools
import sys

import numpy as np
import pytest

from metrack import plots
from metrack.experiments import demo
from metrack.experiments.synthetic import reproduce


def test_prints_the_tables_and_says_where_things_are(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "reproduce", functools.partial(reproduce, n_jobs=1))
    monkeypatch.setattr(demo, "N_TRIALS", 2)
    demo.run(out=tmp_path / "new", seed=0, n_pairs=30)
    printed = capsys.readouterr().out
    for name in ["static", "moderate", "sadl-published", "true metric", "P(NMI > 0.8)"]:
        assert name in printed
    assert f"Report: {tmp_path / 'new' / 'report.html'}" in printed.splitlines()
    assert "Trials" not in printed  # no progress bar in a file


def test_runs_anew_whatever_the_folder_holds(tmp_path, monkeypatch, capsys):
    small = functools.partial(reproduce, methods=["tracker"], n_jobs=1)
    monkeypatch.setattr(demo, "reproduce", small)
    monkeypatch.setattr(demo, "N_TRIALS", 2)
    results = []
    for seed in (1, 2, 1):
        demo.run(out=tmp_path, seed=seed, n_pairs=20)
        results.append((tmp_path / "results.json").read_bytes())
    assert results[0] == results[2] != results[1]


def test_a_missing_extra_is_named_before_any_work(tmp_path, monkeypatch):
    for module, extra in (("matplotlib", "plots"), ("plotly", "plots"), ("pyarrow", "io")):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(ImportError, match=rf"pip install 'metrack\[{extra}\]'"):
                demo.run(out=tmp_path / "demo", seed=0, n_pairs=100)
    assert not (tmp_path / "demo").exists()


def test_a_figure_of_a_stream_without_drift():
    band = tuple(np.array([[0.2, 0.1], [0.1, 0.1], [0.3, 0.2]]))
    panels = {"error": {"a": band, "raw": band}}
    figure = plots.tracking(np.zeros(10), np.array([5, 10]), panels, ["raw"], [(0, "only")])
    assert len(figure.axes) == 2
    assert [line.get_label() for line in figure.axes[1].lines] == ["a", "raw"]


@pytest.mark.parametrize(("width", "darkest"), [(0.02, 0.8), (0.5, 0.25)])
def test_shades_hide_no_lines(width, darkest):
    """Seven intervals on one another, as of few trials, leave more to be seen than they cover."""
    steps, mean = np.array([5, 10]), np.array([0.5, 0.9])
    band = mean, mean - width / 2, mean + width / 2
    panels = {"error": dict.fromkeys("abcdefg", band)}
    axes = plots.tracking(np.zeros(10), steps, panels, [], [(0, "only")]).axes[1]
    shades = [each.get_alpha() for each in axes.collections]
    assert len(shades) == 7
    assert max(shades) > 0.02  # and can be seen themselves
    assert 1 - np.prod(1 - np.array(shades)) < darkest
    drawn = [each.get_zorder() for each in axes.collections]
    assert max(drawn) < min(line.get_zorder() for line in axes.lines)
