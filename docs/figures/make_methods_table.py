"""The table of docs/which-method.md, measured.

    python docs/figures/make_methods_table.py

Every method learns from one half of the points, standardised, and is judged on the other half: the
share of points whose class their 5 nearest neighbours of the first half tell, and the area under
the ROC curve of 4,000 pairs. One thread.
"""

import os
import time
import warnings

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from metrack import ITML, LMNN, MMC, FromLabels, FromTransformer, MetricTracker
from metrack.estimators.choosing.constraints import pairs_from_labels


def clusters():
    """2,000 points of 25 features, in three clusters that differ in three of them."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=2_000)
    X = rng.normal(size=(2_000, 25))
    X[np.arange(2_000), y] += 3.0
    return X, y


DATA = {
    "clusters, 2,000 x 25": clusters,
    "wine, 178 x 13": lambda: load_wine(return_X_y=True),
    "breast cancer, 569 x 30": lambda: load_breast_cancer(return_X_y=True),
    "digits, 1,797 x 64": lambda: load_digits(return_X_y=True),
}
METHODS = {
    "Euclidean": FromTransformer(FunctionTransformer()),
    "PCA, 8 components": FromTransformer(PCA(8)),
    "LDA": FromTransformer(LinearDiscriminantAnalysis()),
    "NCA, 8 components": FromTransformer(NeighborhoodComponentsAnalysis(8, random_state=0)),
    "`LMNN`": LMNN(),
    "`LMNN`, 8 components": LMNN(n_components=8),
    "`ITML`": FromLabels(ITML(), random_state=0),
    "`MMC`": FromLabels(MMC(), random_state=0),
    "`MMC`, diagonal": FromLabels(MMC(diagonal=True), random_state=0),
    "`MetricTracker`": FromLabels(MetricTracker(), random_state=0),
}


def measure(method, X, y):
    """Share of neighbours' votes that are right, area under the curve, seconds of the fit."""
    X, test, y, test_y = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    scaler = StandardScaler().fit(X)
    X, test = scaler.transform(X), scaler.transform(test)
    learner, start = clone(method), time.perf_counter()
    learner.fit(X, y)
    took = time.perf_counter() - start
    neighbours = KNeighborsClassifier(5).fit(learner.transform(X), y)
    share = neighbours.score(learner.transform(test), test_y)
    rows, labels = pairs_from_labels(test_y, 4_000, random_state=0)
    return share, roc_auc_score(labels, -learner.pair_distance(test[rows])), took


def main():
    """Print the table in Markdown."""
    warnings.simplefilter("ignore")  # scikit-learn's own, about what PCA and NCA do
    for method in METHODS.values():
        measure(method, *load_wine(return_X_y=True))  # compiled before the clock starts
    print("| |" + "".join(f" {name} |" for name in DATA))
    print("| --- |" + " --- |" * len(DATA))
    for name, method in METHODS.items():
        cells = (measure(method, *data()) for data in DATA.values())
        print(f"| {name} |" + "".join(f" {a:.3f} / {b:.3f} / {t:.2g} s |" for a, b, t in cells))


if __name__ == "__main__":
    main()
