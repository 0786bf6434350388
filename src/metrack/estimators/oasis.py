"""OASIS: a bilinear similarity from triplets."""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from metrack.engine.numerics.kernels import Floats, Ints
from metrack.engine.online.oasis import DenseSimilarity
from metrack.estimators.bases.online_linear import OnlineLinearEmbedding
from metrack.estimators.bases.threads import exclusive, when_fitted
from metrack.estimators.inputs import (
    LabelsLike,
    PairBatch,
    Points,
    PointsLike,
    Preprocessor,
    TripletBatch,
    TuplesLike,
    check_preprocessor,
    points_for,
)
from metrack.estimators.inputs.settings import Seed, positive, whole
from metrack.estimators.resolved.auto import units
from metrack.estimators.resolved.dense import SimilaritySettings


class OASIS(OnlineLinearEmbedding):
    """Online algorithm for scalable image similarity: a bilinear similarity from triplets.

    Learns S(x, z) = x'Wz such that an anchor p is more similar to its positive p+ than to its
    negative p- by a margin of 1. W starts at the identity and takes a passive-aggressive step per
    triplet (Chechik, Sharma, Shalit and Bengio, 2010),

        W <- W + t V,    V = p (p+ - p-)',    t = min(e, loss / |V|^2).

    W need not be symmetric. For an embedding and distances, the positive semidefinite part of
    (W + W') / 2 is used.

    Parameters
    ----------
    learning_rate : float
        The longest step e: the aggressiveness, C in the paper.
    scale : {"auto", None}
        "auto" measures V in units of its root mean square so far, so that results do not depend on
        the data's units.
    preprocessor : array, CSR matrix or callable, optional
        Points that triplets of row numbers refer to. With a CSR matrix a step takes time
        proportional to the product of the non-zeros of p and of p+ - p-.
    random_state : int, RandomState or None
        Not used here: the step is deterministic.

    Attributes
    ----------
    components_ : array (rank_, n_features)
        L with L'L the positive semidefinite part of (W + W') / 2.
    rank_ : int
    n_triplets_seen_ : int
    resolved_ : NamedTuple
        What the settings came to for so many features: every choice, none of them "auto".

    Notes
    -----
    Similarities depend on where the origin lies, which distances do not: points are best centred,
    or of unit length, before.

    Examples
    --------
    >>> import numpy as np
    >>> from metrack import OASIS
    >>> rng = np.random.default_rng(0)
    >>> triplets = rng.normal(size=(3000, 3, 5))
    >>> nearer = triplets[:, 0, 0] * (triplets[:, 1, 0] - triplets[:, 2, 0]) > 0
    >>> triplets[~nearer] = triplets[~nearer][:, [0, 2, 1]]  # only the first feature counts
    >>> learner = OASIS().fit(triplets[:2500])
    >>> learner.score(triplets[2500:]) > 0.9
    True
    >>> learner.similarity(triplets[0, :1], triplets[0, 1:]).shape
    (1, 2)
    >>> learner.resolved_
    SimilaritySettings(n_features=5, units='root_mean_square', learning_rate=1.0)
    """

    resolved_: SimilaritySettings
    engine_: DenseSimilarity

    def __init__(
        self,
        learning_rate: float = 1.0,
        scale: str | None = "auto",
        preprocessor: Preprocessor = None,
        random_state: Seed = None,
    ) -> None:
        self.learning_rate = learning_rate
        self.scale = scale
        self.preprocessor = preprocessor
        self.random_state = random_state

    @exclusive
    def fit(self, triplets: TuplesLike, y: LabelsLike | None = None) -> Self:
        """Forget everything, then learn the triplets in order.

        Parameters
        ----------
        triplets : array (n_triplets, 3, n_features), or row numbers (n_triplets, 3)
            Anchor, positive and negative; row numbers need a preprocessor.
        y : ignored
            For scikit-learn's sake.
        """
        self._learn(triplets, anew=True)
        return self

    def partial_fit(self, triplets: TuplesLike, y: LabelsLike | None = None) -> Self:
        """Go on learning: `observe`, returning self."""
        self.observe(triplets)
        return self

    @exclusive
    def observe(self, triplets: TuplesLike, y: LabelsLike | None = None) -> Floats:
        """Test, then train: the loss suffered on each triplet before it is learned from.

        It is the hinge max(0, 1 - S(p, p+) + S(p, p-)). Calls of any sizes give the same state, bit
        for bit, as one call with all triplets.
        """
        return self._learn(triplets, anew=not hasattr(self, "engine_"))

    def _learn(self, triplets: TuplesLike, anew: bool) -> Floats:
        preprocessor = check_preprocessor(self.preprocessor) if anew else self.preprocessor_
        batch = TripletBatch(triplets, preprocessor, None if anew else self.n_features_in_)
        if anew:
            self.start(batch.n_features, preprocessor)
        self._forget_read_outs()
        return np.concatenate([self.engine_.observe(*rows) for rows in batch.chunks()])

    def learn_one(self, anchor: Any, positive: Any, negative: Any) -> Self:
        """Learn a single triplet: three points, or three row numbers with a preprocessor."""
        self.observe([[anchor, positive, negative]])
        return self

    def similarity(self, X: PointsLike, Z: PointsLike | None = None) -> Floats:
        """Learned similarity of each point of X to each of Z.

        Parameters
        ----------
        X, Z : array or CSR matrix (n_points, n_features), or row numbers with a preprocessor
            Without Z, of X to itself.

        Returns
        -------
        array (n_points_X, n_points_Z)
            x'Wz; not symmetric in general.
        """
        check_is_fitted(self)
        x = points_for(self, X)
        z = x if Z is None else points_for(self, Z)
        return np.asarray(z @ (x @ self._W()).T).T

    def pair_score(self, pairs: TuplesLike) -> Floats:
        """Learned similarity x'Wz of the two points of each pair: larger is more alike."""
        check_is_fitted(self)
        batch = PairBatch(pairs, self.preprocessor_, self.n_features_in_)
        return self._bilinear(batch.member(0, 0, len(batch)), batch.member(1, 0, len(batch)))

    def decision_function(self, triplets: TuplesLike) -> Floats:
        """By how much each anchor is more similar to its positive than to its negative."""
        check_is_fitted(self)
        batch = TripletBatch(triplets, self.preprocessor_, self.n_features_in_)
        return self._bilinear(batch.member(0, 0, len(batch)), batch.gaps(0, len(batch)))

    def predict(self, triplets: TuplesLike) -> Ints:
        """+1 where the anchor is more similar to its positive than to its negative, else -1."""
        return np.where(self.decision_function(triplets) > 0.0, 1, -1)

    def score(self, triplets: TuplesLike, y: LabelsLike | None = None) -> float:
        """Share of the triplets in the right order."""
        return float(np.mean(self.predict(triplets) == 1))

    def get_bilinear_matrix(self) -> Floats:
        """The matrix W, (n_features, n_features); L'L where ``components_`` was set by hand."""
        return self._W().copy()

    @property
    def n_triplets_seen_(self) -> int:
        """How many triplets have been learned from."""
        check_is_fitted(self)
        return self.engine_.n_pairs

    def resolve(self, n_features: int) -> SimilaritySettings:
        """What the settings come to for so many features; nothing is learned or changed."""
        rate = positive("learning_rate", self.learning_rate)
        whole("n_features", n_features)
        return SimilaritySettings(n_features, units(self.scale), rate)

    @when_fitted
    def _W(self) -> Floats:
        by_hand = "components" in self.set_by_hand_
        return self._kept("W", self.get_mahalanobis_matrix if by_hand else self.engine_.matrix)

    def _bilinear(self, x: Points, z: Points) -> Floats:
        """X'Wz row by row."""
        images = np.asarray(x @ self._W())
        if sp.issparse(z):
            return np.asarray(z.multiply(images).sum(axis=1)).ravel()
        found: Floats = np.einsum("ij,ij->i", images, z)
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags
