"""Online learners: built from what their settings come to, saved, and started anew."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.utils import check_random_state

from metrack.estimators.bases import unlabelled
from metrack.estimators.bases.base import Embedding
from metrack.estimators.bases.course import Course
from metrack.estimators.bases.threads import exclusive
from metrack.estimators.inputs import Lookup, Preprocessor, take_names
from metrack.estimators.inputs.settings import Seed
from metrack.estimators.resolved.record import Engine, Resolved
from metrack.estimators.states import persistence

T = TypeVar("T")


class OnlineEmbedding(Embedding):
    """A metric that is read out of an engine's state when it is asked for.

    A subclass says what its settings come to (`resolve`); from that all else is built.

    Attributes
    ----------
    resolved_ : NamedTuple
        What the settings came to: every choice, none of them "auto".
    engine_ : Ensemble, DenseMetric or DenseSimilarity
        All that is learned.
    rng_ : RandomState
    preprocessor_
        The preprocessor, checked.
    set_by_hand_ : dict
        What a user has set since learning last went on: "threshold" or "components".
    points_ : Points or None
        What points without judgements have shown.
    course_ : Course or None
        How it went since it was started or loaded; of learners of pairs.
    """

    preprocessor: Preprocessor
    random_state: Seed
    resolved_: Resolved
    engine_: Engine
    rng_: np.random.RandomState
    set_by_hand_: dict[str, Any]
    points_: unlabelled.Points | None
    course_: Course | None

    def resolve(self, n_features: int) -> Resolved:
        """What the settings come to for so many features; nothing is learned or changed."""
        raise NotImplementedError

    @exclusive
    def start(self, n_features: int, preprocessor: Lookup = None) -> Self:
        """Forget everything, and be ready for points of so many features.

        Parameters
        ----------
        n_features : int
        preprocessor : optional
            As `check_preprocessor` returns it.
        """
        # What may refuse a setting comes before anything changes.
        rng, resolved = check_random_state(self.random_state), self.resolve(n_features)
        take_names(self, self.preprocessor)
        return self.restore(resolved, resolved.build(), rng, preprocessor)

    def restore(
        self,
        resolved: Resolved,
        engine: Engine,
        rng: np.random.RandomState,
        preprocessor: Lookup = None,
    ) -> Self:
        """Go on from what an engine knows, such as a saved one."""
        self.resolved_, self.engine_, self.rng_ = resolved, engine, rng
        self.preprocessor_ = preprocessor
        self.n_features_in_ = resolved.n_features
        self.points_, self.course_ = None, None
        self._forget_read_outs()
        return self

    def _forget_read_outs(self) -> None:
        self._computed: dict[str, Any] = {}
        self.set_by_hand_ = {}

    @exclusive
    def _kept(self, name: str, compute: Callable[[], T]) -> T:
        """What is computed when it is first asked for, and kept until learning goes on."""
        if name not in self._computed:
            self._computed[name] = compute()
        found: T = self._computed[name]
        return found

    @exclusive
    def save(self, path: str | Path) -> None:
        """Write all that was learned into a folder, from which `metrack.load` brings it back.

        What is loaded goes on exactly as this learner would. The folder keeps the last three
        states saved to it; a crash while saving harms none of them. The preprocessor is not
        saved: it is given again to `metrack.load`.

        Parameters
        ----------
        path : path of a folder
            Made if missing; must hold nothing but states.
        """
        persistence.save(self, path)
