"""One setting at a time, on development seeds."""

import time

import numpy as np

from benchmarks.tracking_rates import single_rates
from benchmarks.tracking_streams import DEVELOPMENT_SEEDS, MAIN
from benchmarks.tracking_tables import directions, log_ratio
from metrack import SADL

BASE = {"combiner": "adanormalhedge", "divergence": "frobenius", "eta0": 0.8, "rho": 0.003}

# One setting at a time, around this base. "units": the root mean square of |x - z| is not 1 but
# this much. Differences c times as long move the metric c^4 times as far beside mu, so that this is
# mu's own rate; eta0 falls with it, or the metric's steps would grow.
VARIANTS = {
    "base": {},
    "combiner sadl": {"combiner": "sadl"},
    "combiner cbce": {"combiner": "cbce"},
    "combiner fixed_share (always on)": {"combiner": "fixed_share"},
    "combiner ader (always on)": {"combiner": "ader"},
    "first_interval 4": {"first_interval": 4},
    "first_interval 4, eta0 1.6": {"first_interval": 4, "eta0": 1.6},
    "first_interval 16": {"first_interval": 16},
    "first_interval 16, eta0 3.2": {"first_interval": 16, "eta0": 3.2},
    "eta0 0.4": {"eta0": 0.4},
    "eta0 0.6": {"eta0": 0.6},
    "eta0 1.0": {"eta0": 1.0},
    "eta0 1.6": {"eta0": 1.6},
    "rho 0": {"rho": 0.0},
    "rho 0.001": {"rho": 0.001},
    "rho 0.01": {"rho": 0.01},
    "rho 0.03": {"rho": 0.03},
    "explicit steps": {"step": "explicit"},
    "explicit steps, eta0 0.3": {"step": "explicit", "eta0": 0.3},
    "cap 1": {"cap": 1.0},
    "cap 4": {"cap": 4.0},
    "cap 8": {"cap": 8.0},
    "weight_loss logistic": {"weight_loss": "logistic"},
    "output sample": {"output": "sample", "random_state": 0},
    "output best": {"output": "best"},
    "loss logistic": {"loss": "logistic"},
    "loss squared_hinge": {"loss": "squared_hinge"},
    "divergence von_neumann": {"divergence": "von_neumann"},
    "divergence burg": {"divergence": "burg"},
    "init identity": {"init": "identity"},
    "units 2": {"units": 2.0, "eta0": 0.2},
    "units 3": {"units": 3.0, "eta0": 0.06},
    "units 5": {"units": 5.0, "eta0": 0.008},
    "units 8": {"units": 8.0, "eta0": 0.00125},
    "units 5, rho 0": {"units": 5.0, "eta0": 0.008, "rho": 0.0},
    "units 5, rho 0.03": {"units": 5.0, "eta0": 0.008, "rho": 0.03},
    "von_neumann, units 2, eta0 0.2": {"divergence": "von_neumann", "units": 2.0, "eta0": 0.2},
    "von_neumann, units 2, eta0 0.4": {"divergence": "von_neumann", "units": 2.0, "eta0": 0.4},
    "von_neumann, units 3, eta0 0.4": {"divergence": "von_neumann", "units": 3.0, "eta0": 0.4},
    "burg, eta0 0.2": {"divergence": "burg", "eta0": 0.2},
    "burg, units 1.4, eta0 0.2": {"divergence": "burg", "units": 1.4, "eta0": 0.2},
    "burg, units 2, eta0 0.2": {"divergence": "burg", "units": 2.0, "eta0": 0.2},
}

# The hinge loss of a margin, from another loss of it.
HINGE_OF = {
    "hinge": lambda loss: loss,
    "squared_hinge": lambda loss: np.sqrt(2.0 * loss),
    "logistic": lambda loss: np.maximum(
        0.0, 1.0 + loss + np.log(-np.expm1(-np.maximum(loss, 1e-300)))
    ),
}


def ablate(console, cases=None, seeds=DEVELOPMENT_SEEDS, n_pairs=3_000, variants=None):
    """Each variant on the development streams: hinge against the base's best rate."""
    variants = VARIANTS if variants is None else variants
    cases = MAIN if cases is None else cases
    found = {name: [] for name in variants}
    for case in cases:
        for seed in seeds:
            stream = case.stream(seed, n_pairs)
            pairs, y = stream.pairs()
            unit = np.sqrt(np.mean(np.sum((pairs[:, 0] - pairs[:, 1]) ** 2, axis=1)))
            singles = single_rates(SADL(**BASE), case.n_features)
            best = min(float(each.observe(pairs, y).mean()) for each in singles.values())
            for name, settings in variants.items():
                own = {name: value for name, value in settings.items() if name != "units"}
                measured = pairs
                if "units" in settings:
                    own["scale"], measured = None, pairs * (settings["units"] / unit)
                tracker = SADL(**BASE | own)
                start = time.perf_counter()
                losses = HINGE_OF[tracker.loss](tracker.observe(measured, y))
                record = {
                    "profile": case.profile,
                    "seed": seed,
                    "hinge": float(losses.mean()),
                    "error": float(np.mean(losses > 1.0)),
                    "hinge_best": best,
                    "rank": int(tracker.rank_),
                    "directions": directions(tracker),
                    "seconds": time.perf_counter() - start,
                }
                found[name].append(record)
        console.print(f"{case.profile} done")
    return found


ABLATION_COLUMNS = ["variant", "hinge / best rate", "worst profile", "0-1 loss", "time"]


def ablation_rows(found):
    rows = []
    base = sum(r["seconds"] for r in found["base"])
    for name, records in found.items():
        logs = log_ratio(records, "hinge", "hinge_best")
        profiles = dict.fromkeys(r["profile"] for r in records)
        means = {
            profile: np.mean(
                [log for log, r in zip(logs, records, strict=True) if r["profile"] == profile]
            )
            for profile in profiles
        }
        worst = max(means, key=means.__getitem__)
        error = np.mean([r["error"] for r in records])
        seconds = sum(r["seconds"] for r in records) / base
        cells = [name, f"{np.exp(logs.mean()):.3f}", f"{np.exp(means[worst]):.3f} ({worst})"]
        rows.append([*cells, f"{error:.3f}", f"{seconds:.2f}"])
    return rows
