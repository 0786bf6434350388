"""What every estimator computes, to the last bit: recorded before a change, compared after it.

    python tests/recorded.py record FILE.npz      on the commit before
    python tests/recorded.py compare FILE.npz     on the one after

Records are kept outside of git, since bits differ between processors. A change of how things are
arranged leaves them all equal; a change of an algorithm shows here in what it changes, and by how
much. Only the public interface is used, so that the same script runs before and after.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import metrack
from metrack import COMID, ITML, LEGO, LMNN, MMC, OASIS, POLA, SADL, FromLabels, OnlineITML

CHUNKS = (1, 7, 64, 3)  # sizes of calls, again and again
COMBINERS = ("sadl", "cbce", "adanormalhedge", "fixed_share", "ader")
LOSSES = ("hinge", "squared_hinge", "logistic", "exponential", "least_squares")
DIVERGENCES = ("frobenius", "von_neumann", "burg")


def drifting(n: int, n_pairs: int = 400, seed: int = 0) -> tuple[Any, Any]:
    """Pairs whose meaning of alike moves from the first feature to the second half-way."""
    rng = np.random.default_rng(seed)
    pairs = rng.normal(size=(n_pairs, 2, n))
    pairs[17, 1] = pairs[17, 0]  # a pair that says nothing
    which = (np.arange(n_pairs) >= n_pairs // 2).astype(int)
    gap = np.abs(pairs[:, 0] - pairs[:, 1])[np.arange(n_pairs), which]
    return pairs, np.where(gap < 1.0, 1, -1)


def words(n: int = 60, n_pairs: int = 200) -> tuple[Any, Any, Any]:
    """Sparse points, pairs of row numbers, labels."""
    rng = np.random.default_rng(1)
    points = sp.random(80, n, density=0.1, random_state=rng, format="csr")
    rows = rng.integers(80, size=(n_pairs, 2))
    first = points.toarray()[:, 0] > 0
    return points, rows, np.where(first[rows[:, 0]] == first[rows[:, 1]], 1, -1)


def read(learner: Any) -> dict[str, Any]:
    """All that a fitted learner gives away."""
    found = {"matrix": learner.get_mahalanobis_matrix(), "components": learner.components_}
    names = (
        "mu_", "threshold_", "rank_", "density_", "truncated_mass_", "weights_", "scales_",
        "selected_scale_", "n_pairs_seen_",
    )  # fmt: skip
    for name in names:
        if hasattr(learner, name):
            found[name] = np.asarray(getattr(learner, name))
    if hasattr(learner, "drift_report"):
        report = learner.drift_report()
        found["report"] = np.array([report[0], report[1], *report[3]], dtype=float)
    return found


def streamed(learner: Any, pairs: Any, y: Any, chunks: tuple[int, ...] = CHUNKS) -> dict[str, Any]:
    """Losses of calls of many sizes, and what was learned by half-way and at the end."""
    losses, done, call, found = [], 0, 0, {}
    while done < len(y):
        stop = done + chunks[call % len(chunks)]
        losses.append(learner.observe(pairs[done:stop], y[done:stop]))
        if done < len(y) // 2 <= stop:
            found = {f"half.{name}": value for name, value in read(learner).items()}
        done, call = stop, call + 1
    return {"losses": np.concatenate(losses), **found, **read(learner)}


def settings_of_comid() -> Iterator[dict[str, Any]]:
    """Settings that change COMID's path, one after another."""
    for loss in LOSSES:
        for divergence in DIVERGENCES:
            for step in ("implicit", "explicit"):
                yield {"loss": loss, "divergence": divergence, "step": step}
    for divergence in DIVERGENCES:
        yield {"divergence": divergence, "rho": 0.02, "init": "identity"}
        yield {"divergence": divergence, "n_components": 2, "rho": 0.001}
        yield {"divergence": divergence, "schedule": "invsqrt", "learning_rate": 2.0}
        yield {"divergence": divergence, "scale": None}
    for loss in LOSSES:
        yield {"regularizer": "logdet", "loss": loss}
    yield {"regularizer": "logdet", "rho": 0.05, "step": "explicit"}
    yield {"regularizer": None}
    for psd in ("exact", "on_read", "diagonal"):
        for init in ("zero", "identity"):
            yield {"regularizer": "l1", "psd": psd, "init": init}
        yield {"regularizer": "l1", "psd": psd, "rho": 0.05, "n_components": 3}


def settings_of_sadl() -> Iterator[dict[str, Any]]:
    """Settings that change SADL's path, one after another."""
    yield {}
    for combiner in COMBINERS:
        for output in ("average", "sample", "best"):
            yield {"combiner": combiner, "output": output, "random_state": 3}
        yield {"combiner": combiner, "weight_loss": "logistic", "divergence": "frobenius"}
        yield {"combiner": combiner, "cap": 1.0, "first_interval": 4, "replays": 0}
    for loss in LOSSES:
        yield {"loss": loss}
        yield {"loss": loss, "combiner": "ader", "step": "explicit"}
    for divergence in DIVERGENCES:
        for replays in (0, 3):
            yield {"divergence": divergence, "regularizer": "nuclear", "replays": replays}
        yield {"divergence": divergence, "regularizer": "nuclear", "n_components": 2}
    for psd in ("exact", "on_read", "diagonal"):
        yield {"regularizer": "l1", "psd": psd, "replays": 2 if psd == "diagonal" else 0}
    yield {"scale": None, "first_interval": 3}
    yield {"rho": 0.0, "eta0": 0.3}
    yield {"regularizer": None, "init": "identity", "divergence": "frobenius"}


def name_of(kind: str, settings: dict[str, Any]) -> str:
    """A case's name."""
    return kind + "(" + ", ".join(f"{k}={v!r}" for k, v in settings.items()) + ")"


def online() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """The pair learners, on dense pairs of 6 features."""
    pairs, y = drifting(6)
    for settings in settings_of_comid():
        yield name_of("COMID", settings), lambda s=settings: streamed(COMID(**s), pairs, y)
    for settings in settings_of_sadl():
        yield name_of("SADL", settings), lambda s=settings: streamed(SADL(**s), pairs, y)
    for scale in ("auto", None):
        s = {"scale": scale}
        yield name_of("POLA", s), lambda s=s: streamed(POLA(**s), pairs, y)
        yield name_of("LEGO", s), lambda s=s: streamed(LEGO(**s), pairs, y)
        yield name_of("OnlineITML", s), lambda s=s: streamed(OnlineITML(**s), pairs, y)
    published = {"eta0": 0.5, "rho": 0.01, "random_state": 7}
    yield "as published", lambda: streamed(SADL.as_published(**published), pairs, y)
    yield "one call", lambda: streamed(SADL(experts="cover"), pairs, y, (1000,))
    yield "single pairs", lambda: streamed(SADL(experts="cover"), pairs, y, (1,))


def wide() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """More features, sparse rows, a frame, and long streams."""
    pairs, y = drifting(40)
    for settings in ({"n_components": 3}, {"divergence": "frobenius"}, {"regularizer": "l1"}):
        for kind in (COMID, SADL):
            name = name_of("wide " + kind.__name__, settings)
            yield name, lambda k=kind, s=settings: streamed(k(**s), pairs, y)
    points, rows, labels = words()
    for settings in (
        {"n_components": 3}, {"divergence": "frobenius"}, {}, {"scale": None, "n_components": 4},
        *({"regularizer": "l1", "psd": psd} for psd in ("on_read", "diagonal")),
    ):  # fmt: skip
        for kind in (COMID, SADL):
            name = name_of("sparse " + kind.__name__, settings)
            yield (
                name,
                lambda k=kind, s=settings: streamed(k(preprocessor=points, **s), rows, labels),
            )
    for kind in (OnlineITML, LEGO, POLA):
        name = "sparse " + kind.__name__
        yield name, lambda k=kind: streamed(k(preprocessor=points), rows, labels)
    many, marks = drifting(10, 10_000)
    yield "long SADL", lambda: streamed(SADL(experts="cover"), many, marks, (4096, 5, 1000))
    yield (
        "long nuclear",
        lambda: streamed(
            SADL(combiner="sadl", regularizer="nuclear", rho=0.05), many, marks, (5000,)
        ),
    )


def others() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Triplets, labels, more features on the way, states from disk, batch learners."""
    rng = np.random.default_rng(5)
    triplets = rng.normal(size=(300, 3, 5))
    X = rng.normal(size=(90, 5))
    X[:, 0] *= 3.0
    classes = (X[:, 0] > 0.0).astype(int) + (X[:, 1] > 0.5)

    def oasis(scale: str | None) -> dict[str, Any]:
        learner = OASIS(scale=scale)
        losses = [learner.observe(triplets[:10]), learner.observe(triplets[10:])]
        return {"losses": np.concatenate(losses), "W": learner.get_bilinear_matrix()}

    yield "OASIS", lambda: oasis("auto")
    yield "OASIS, unscaled", lambda: oasis(None)
    for learner in (SADL(experts="cover"), COMID(), OnlineITML(), SADL(regularizer="l1")):
        name = f"FromLabels({type(learner).__name__}, {learner.get_params().get('regularizer')})"
        yield name, lambda k=learner: read(FromLabels(k, random_state=0).fit(X, classes).learner_)
    for batch in (LMNN(), LMNN(n_components=2), ITML(random_state=0), MMC(), MMC(diagonal=True)):
        yield f"{batch}", lambda b=batch: _fitted(b, X, classes)
    yield "river, widening", widened
    for tracker in (
        SADL(experts="cover"),
        SADL.as_published(eta0=0.5, rho=0.01, random_state=7),
        OnlineITML(),
    ):
        yield f"loaded {tracker}", lambda t=tracker: reloaded(t)


def _fitted(learner: Any, X: Any, classes: Any) -> dict[str, Any]:
    if isinstance(learner, LMNN):
        return {"components": learner.fit(X, classes).components_}
    rng = np.random.default_rng(6)
    rows = rng.integers(len(X), size=(150, 2))
    y = np.where(classes[rows[:, 0]] == classes[rows[:, 1]], 1, -1)
    return {"components": learner.fit(X[rows], y).components_}


def widened() -> dict[str, Any]:
    """Features that come while a River model learns."""
    from metrack import river

    found = {}
    rng = np.random.default_rng(7)
    for kind in (river.SADL, river.COMID):
        model = kind(seed=0)
        for t in range(120):
            names = "abcdef"[: 2 + t // 30]
            x = {name: float(rng.normal()) for name in names}
            model.learn_one(x, x["a"] > 0.0)
        probe = model.transform_one(dict.fromkeys("abcde", 1.0))
        found[kind.__name__] = np.array([float(probe[name]) for name in probe])
    return found


def reloaded(tracker: Any) -> dict[str, Any]:
    """A learner that was saved and loaded half-way."""
    import tempfile

    pairs, y = drifting(6)
    tracker.observe(pairs[:200], y[:200])
    with tempfile.TemporaryDirectory() as folder:
        tracker.save(folder)
        return streamed(metrack.load(folder), pairs[200:], y[200:])


def run() -> dict[str, Any]:
    """Every case's arrays, by case and name."""
    found: dict[str, Any] = {}
    for cases in (online(), wide(), others()):
        for name, work in cases:
            for part, value in work().items():
                found[f"{name} :: {part}"] = np.asarray(value)
    return found


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What is not the same, in words."""
    words_ = [f"only before: {name}" for name in old if name not in new]
    words_ += [f"only after: {name}" for name in new if name not in old]
    for name in old:
        if name not in new or old[name].tobytes() == new[name].tobytes():
            continue
        a, b = old[name], new[name]
        if a.shape != b.shape:
            words_.append(f"{name}: shape {a.shape} before, {b.shape} after")
        else:
            gap = np.abs(a.astype(float) - b.astype(float))
            far = float(np.max(gap / np.maximum(np.abs(a), 1e-300), initial=0.0))
            words_.append(f"{name}: off by up to {gap.max():.3g} ({far:.3g} of its size)")
    return words_


def main(action: str, path: str) -> int:
    """Record, or compare with a record; returns the exit status."""
    found = run()
    if action == "record":
        np.savez(Path(path), **found)
        print(f"{len(found)} arrays in {path}")
        return 0
    with np.load(Path(path)) as saved:
        old = {name: saved[name] for name in saved.files}
    words_ = differences(old, found)
    print("\n".join(words_) or f"all {len(found)} arrays are equal, bit for bit")
    return bool(words_)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("record", "compare"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
