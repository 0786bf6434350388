"""``metrack demo``: the drift study with few trials."""

from pathlib import Path

from metrack.experiments.synthetic import reproduce

N_TRIALS = 12


def run(out: Path, seed: int, n_pairs: int) -> None:
    """Run the small study anew; print its tables, and save its figure and report.

    Parameters
    ----------
    out : Path
        Folder for the results; made if missing.
    seed : int
        Same seed, same results.
    n_pairs : int
        Length of each trial's stream; 0 is the long schedule's own.
    """
    reproduce(out, N_TRIALS, seed=seed, n_pairs=n_pairs, anew=True)
