"""The paper's study of Amazon reviews: what one trial is, as a function of its number.

What a review is alike to depends on the question: the type of its product, or its sentiment. First
each question for itself: embeddings in few dimensions. Then a question that changes: how soon the
metric follows. Each embedding, and each run of a change, is a trial that runs by itself.
"""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from metrack.checks import Floats, Ints
from metrack.estimators.bases.online import OnlineLearner
from metrack.estimators.comid import COMID
from metrack.estimators.sadl import SADL
from metrack.evaluate import leave_one_out_error
from metrack.experiments.report import Json
from metrack.streams import Corpus, LabelledStream, Segment
from metrack.streams.base import generator
from metrack.streams.labelled import Points

N_NEIGHBORS = 5
DIMENSIONS = (2, 5)
STATIC, STATIC_L1 = 15, 5  # pairs of a static embedding, in units of those before a change
TOP_WORDS = 10

QUESTIONS = ("type", "sentiment")
FEATURES = ("counts", "unit")  # as they are; log1p, rows of length 1
CHANGES = {"four classes to type": "type x sentiment", "sentiment to type": "sentiment"}

# Chosen on seeds from 1000 on, which no result here uses. The rank alone regularises the static
# embeddings: shrinking eigenvalues as well raised the error of sentiment.
LOW_RANK: Json = {"divergence": "frobenius", "learning_rate": 0.4, "rho": 0.0}
L1: Json = {"regularizer": "l1", "psd": "on_read", "learning_rate": 0.4, "rho": 1e-6}
COMMON: Json = {"n_components": 5, "divergence": "frobenius", "rho": 0.001}
FALLING = COMMON | {"learning_rate": 40.0, "schedule": "invsqrt"}
SETTINGS: dict[str, Json] = {
    "SADL": COMMON | {"eta0": 4.0, "first_interval": 16},
    "reinitialised": FALLING,
    "non-adaptive": FALLING,
}


class Study(NamedTuple):
    """All that the numbers depend on."""

    corpus: Corpus
    seed: int = 0
    n_runs: int = 20
    n_pairs: int = 20_000  # before a change, and after it

    def points(self, features: str) -> sp.csr_array:
        """Reviews as rows: raw counts, or log1p scaled to length 1."""
        return self.corpus.counts if features == "counts" else self.corpus.unit_rows()

    def labels(self) -> dict[str, Ints]:
        """Classes of the reviews, by question."""
        kind, sentiment = self.corpus.labels["type"], self.corpus.labels["sentiment"]
        return {"type": kind, "sentiment": sentiment, "type x sentiment": 2 * kind + sentiment}

    def steps(self) -> Ints:
        """Pairs after a change at which the metric is evaluated: first often, then rarely."""
        shares = [0, 25, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 600, 700, 850, 1000, 1250]
        shares += [1500, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000]
        return np.unique(np.array(shares) * self.n_pairs // shares[-1])

    def describe(self) -> Json:
        """All that a trial's numbers depend on, as JSON."""
        return {
            "seed": self.seed,
            "n_pairs": self.n_pairs,
            "reviews": _digest(self.corpus),
            "settings": {"COMID": LOW_RANK, "COMID L1": L1, **SETTINGS},
        }

    @property
    def n_trials(self) -> int:
        """One for each embedding and picture, and one for each run of a change."""
        return len(embeddings()) + self.n_runs * len(CHANGES)


def _digest(corpus: Corpus) -> str:
    """What tells these reviews from any others."""
    found = hashlib.sha256("\n".join(corpus.words.tolist()).encode())
    counts = corpus.counts
    for array in (counts.indptr, counts.indices, counts.data, *corpus.labels.values()):
        found.update(np.asarray(array, np.int64).tobytes())
    return found.hexdigest()[:16]


class Piece(NamedTuple):
    """What a trial does, and of which kind its result is."""

    kind: str
    work: Callable[..., Json]
    arguments: tuple[Any, ...]


def run_trial(study: Study, number: int) -> tuple[str, Json]:
    """One trial: its kind, "static", "picture" or "change", and its result."""
    still = embeddings()
    if number < len(still):
        piece = still[number]
    else:
        run, change = divmod(number - len(still), len(CHANGES))
        piece = Piece("change", follow, (list(CHANGES)[change], run))
    return piece.kind, piece.work(study, *piece.arguments)


def embeddings() -> list[Piece]:
    """Each question for itself. Runs of changes have the numbers after these, however many."""
    found = []
    for question in QUESTIONS:
        found += [Piece("static", embed_sparsely, (question, half)) for half in (False, True)]
        for features in FEATURES:
            found.append(Piece("static", before, (question, features)))
            found.append(Piece("static", by_variance, (question, features)))
            for half in (False, True):
                found += [Piece("static", embed, (question, features, n, half)) for n in DIMENSIONS]
    return found + [Piece("picture", picture, (question,)) for question in QUESTIONS]


def errors_in(embedded: Floats, labels: Ints) -> dict[str, float]:
    """k-NN error in the first dimensions of an embedding."""
    return {str(n): leave_one_out_error(embedded[:, :n], labels, N_NEIGHBORS) for n in DIMENSIONS}


def before(study: Study, question: str, features: str) -> Json:
    """k-NN error among the reviews as they are."""
    error = leave_one_out_error(study.points(features), study.labels()[question], N_NEIGHBORS)
    return _row(question, features, "before") | {"error": {"all": error}}


def by_variance(study: Study, question: str, features: str) -> Json:
    """k-NN error on the principal components."""
    embedded = principal(study.points(features))
    return _row(question, features, "PCA") | {
        "error": errors_in(embedded, study.labels()[question])
    }


def principal(points: sp.csr_array) -> Floats:
    """The first principal components, without making sparse points dense."""
    pca = PCA(max(DIMENSIONS), svd_solver="arpack", random_state=0)
    embedded: Floats = pca.fit_transform(points.astype(np.float64))
    return embedded


def embed(study: Study, question: str, features: str, n: int, half: bool) -> Json:
    """k-NN error in an embedding of n dimensions; of a half that no pair touched, or of all."""
    learner = COMID(n_components=n, **LOW_RANK)
    found = _learned(study, learner, question, features, half, STATIC)
    key = "held_out" if half else "error"
    error = leave_one_out_error(*found, N_NEIGHBORS)
    return _row(question, features, "COMID") | {key: {str(n): error}}


def embed_sparsely(study: Study, question: str, half: bool) -> Json:
    """The same with the elementwise L1 norm, and how sparse the metric is."""
    learner = COMID(n_components=max(DIMENSIONS), **L1)
    found = _learned(study, learner, question, "unit", half, STATIC_L1)
    row = _row(question, "unit", "COMID L1")
    if half:
        return row | {"held_out": errors_in(*found)}
    return row | {
        "error": errors_in(*found),
        "nonzero_entries": learner.density_,
        "words": int(np.count_nonzero(learner.components_.any(axis=0))),
    }


def _row(question: str, features: str, method: str) -> Json:
    return {"question": question, "features": features, "method": method}


def _learned(
    study: Study, learner: OnlineLearner, question: str, features: str, half: bool, length: int
) -> tuple[Floats, Ints]:
    """Reviews in a learned embedding, and their classes; of a half that no pair touched, or all."""
    points, labels = study.points(features), study.labels()[question]
    shuffled = generator(study.seed, "halves").permutation(len(labels))
    learned, judged = np.array_split(shuffled, 2)
    if not half:
        learned = judged = np.arange(len(labels))
    stream = LabelledStream(
        points[learned], labels[learned], n_pairs=length * study.n_pairs, random_state=study.seed
    )
    learner.set_params(preprocessor=stream.preprocessor).fit(*stream.pairs())
    return learner.transform(points[judged]), labels[judged]


def picture(study: Study, question: str) -> Json:
    """Two dimensions to look at, learned and by PCA."""
    learner = COMID(n_components=2, **LOW_RANK)
    learned, labels = _learned(study, learner, question, "unit", False, STATIC)
    pca = principal(study.points("unit"))
    shown = {"learned": learned, "PCA": pca[:, :2], "labels": labels}
    return {question: {name: each.tolist() for name, each in shown.items()}}


def follow(study: Study, change: str, run: int) -> Json:
    """One run of a change: errors of all methods after it, and the words that mattered."""
    points, labels = study.points("unit"), study.labels()
    schedule = [
        Segment("before", CHANGES[change], study.n_pairs),
        Segment("after", "type", study.n_pairs),
    ]
    stream = LabelledStream(points, labels, schedule=schedule, random_state=study.seed + 1 + run)
    errors, words = {}, {}
    for name in SETTINGS:
        learner = make(name, stream.preprocessor)
        if name != "reinitialised":
            learner.partial_fit(*stream.pairs(0, study.n_pairs))
            if name == "SADL":
                words["before"] = top_words(learner, study.corpus.words)
        errors[name] = _after(study, stream, learner)
        if name == "SADL":
            words["after"] = top_words(learner, study.corpus.words)
    return {"change": change, "errors": errors, "words": words}


def make(name: str, points: Points) -> OnlineLearner:
    """A learner with the settings of the study."""
    kind = SADL if name == "SADL" else COMID
    return kind(preprocessor=points, **SETTINGS[name])


def _after(study: Study, stream: LabelledStream, learner: OnlineLearner) -> list[float]:
    """k-NN error in five dimensions as pairs of the new question come in."""
    errors, seen = [], study.n_pairs
    labels = stream.labels(len(stream) - 1)
    for step in (study.n_pairs + study.steps()).tolist():
        if step > seen:
            learner.partial_fit(*stream.pairs(seen, step))
            seen = step
        known = hasattr(
            learner, "n_features_in_"
        )  # reinitialised, it knows nothing before the first pair
        embedded = learner.transform(stream.preprocessor) if known else np.zeros((len(labels), 0))
        errors.append(leave_one_out_error(embedded[:, : max(DIMENSIONS)], labels, N_NEIGHBORS))
    return errors


def top_words(learner: OnlineLearner, words: NDArray[np.str_]) -> list[dict[str, list[str]]]:
    """For the first two directions, the words on either side."""
    found = []
    for component in range(min(2, learner.rank_)):
        named = learner.top_features(component, n=len(words), names=words.tolist())
        sides = ([w for w, weight in named if sign * weight > 0] for sign in (1, -1))
        found.append({side: w[:TOP_WORDS] for side, w in zip(("one", "other"), sides, strict=True)})
    return found
