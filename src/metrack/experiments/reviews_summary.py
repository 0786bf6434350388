"""What the trials of the review study say together: errors, pairs to recover, and claims."""

from collections.abc import Sequence

import numpy as np

from metrack.checks import Floats, Ints
from metrack.evaluate import time_to_recover
from metrack.experiments.report import Json
from metrack.experiments.reviews_trials import (
    CHANGES,
    FEATURES,
    N_NEIGHBORS,
    QUESTIONS,
    SETTINGS,
    STATIC,
    STATIC_L1,
    Study,
)
from metrack.experiments.summary import mean_interval

POINT = 0.01  # recovered is within so much of the final error
FINAL = 4  # evaluations whose mean is the final error


def summarise(study: Study, done: Sequence[tuple[str, Json]]) -> Json:
    """All results as JSON; docs/reproduce-reviews.md documents it."""
    runs = [each for kind, each in done if kind == "change"]
    changes = {
        name: _change(study, [run for run in runs if run["change"] == name]) for name in CHANGES
    }
    results: Json = {
        "format": 1,
        "study": "reviews",
        "seed": study.seed,
        "n_runs": study.n_runs,
        "n_pairs": study.n_pairs,
        "n_pairs_static": {"comid": STATIC * study.n_pairs, "l1": STATIC_L1 * study.n_pairs},
        "n_reviews": int(study.corpus.counts.shape[0]),
        "n_words": int(study.corpus.counts.shape[1]),
        "n_neighbors": N_NEIGHBORS,
        "static": _merged([each for kind, each in done if kind == "static"]),
        "steps": study.steps().tolist(),
        "changes": changes,
        "settings": study.describe()["settings"],
    }
    results["claims"] = claims(results)
    return results


def _merged(rows: Sequence[Json]) -> list[Json]:
    """One row for each method: its errors were found piece by piece."""
    table: dict[tuple[str, ...], Json] = {}
    for row in rows:
        key = row["question"], row["features"], row["method"]
        into = table.setdefault(key, {"error": {}, "held_out": {}})
        for name, value in row.items():
            if name in ("error", "held_out"):
                into[name] |= {n: round(e, 6) for n, e in value.items()}
            else:
                into[name] = round(value, 6) if isinstance(value, float) else value
    order = ["before", "PCA", "COMID", "COMID L1"]
    return sorted(
        table.values(),
        key=lambda row: (
            QUESTIONS.index(row["question"]),
            FEATURES.index(row["features"]),
            order.index(row["method"]),
        ),
    )


def _change(study: Study, runs: Sequence[Json]) -> Json:
    steps, methods = study.steps(), {}
    errors = {name: np.array([run["errors"][name] for run in runs]) for name in SETTINGS}
    oracle = errors["reinitialised"][:, -FINAL:].mean()
    for name, each in errors.items():
        final = each[:, -FINAL:].mean(axis=1)
        own = [_pairs_to(steps, e, f + POINT) for e, f in zip(each, final, strict=True)]
        common = [_pairs_to(steps, e, oracle + POINT) for e in each]
        intervals = [mean_interval(column) for column in each.T]
        methods[name] = {
            "error": {key: [i[key] for i in intervals] for key in ("mean", "low", "high")},
            "final": mean_interval(final),
            "pairs_to_own_final": _needed(own),
            "pairs_to_oracle_final": _needed(common),
        }
    return {"methods": methods, "words": runs[0]["words"]}


def _pairs_to(steps: Ints, errors: Floats, level: float) -> float:
    """Pairs after a change until the first evaluation that is good enough."""
    return time_to_recover(steps, errors, None, level, interpolate=False)


def _needed(pairs: Sequence[float]) -> Json:
    """Mean with its interval over the runs, or None where one never came there."""
    if np.isinf(pairs).any():
        return {"mean": None, "low": None, "high": None, "reached": int(np.isfinite(pairs).sum())}
    return {**mean_interval(np.array(pairs)), "reached": len(pairs)}


def claims(results: Json) -> list[Json]:
    """What the study set out to show, with the numbers."""
    found = []
    rows = {(r["question"], r["features"], r["method"]): r for r in results["static"]}
    for question, most, kind in (
        ("type", 0.015, "error"),
        ("sentiment", 0.22, "error"),
        ("sentiment", 0.26, "held_out"),
    ):
        error = rows[question, "unit", "COMID"][kind]["2"]
        where = "reviews that no pair touched" if kind == "held_out" else "all reviews"
        found.append(
            {
                "claim": f"{question} in 2 learned dimensions, {where}: at most {100 * most:g} %",
                "held": error <= most,
                "evidence": f"{100 * error:.2f} %",
            }
        )
    for change, share in (("four classes to type", 0.5), ("sentiment to type", 1.0)):
        methods = results["changes"][change]["methods"]
        ours, theirs = (
            methods[name]["pairs_to_own_final"]["mean"] for name in ("SADL", "reinitialised")
        )
        how = "in at most half the pairs of" if share < 1.0 else "no later than"
        found.append(
            {
                "claim": f"{change}: SADL is within a point of its final error {how} the learner "
                "reinitialised at the change",
                "held": ours is not None and theirs is not None and ours <= share * theirs,
                "evidence": f"{_words(ours)} pairs against {_words(theirs)}",
            }
        )
    return found


def _words(pairs: float | None) -> str:
    return "never" if pairs is None else f"{pairs:,.0f}"
