"""Classifiers of CapyMOA on streams in files; run by benchmarks/drift.py --moa.

    python benchmarks/drift_moa.py folder results.json

Knows neither metrack nor River: CapyMOA has an environment of its own. Defaults throughout.
"""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from capymoa.classifier import (
    KNN,
    AdaptiveRandomForestClassifier,
    LeveragingBagging,
    SAMkNN,
    StreamingRandomPatches,
)
from capymoa.stream import NumpyStream

FIRST = 200  # points before errors count
METHODS = {
    "MOA k-NN": KNN,
    "MOA SAM-kNN": SAMkNN,
    "MOA forest (ARF)": AdaptiveRandomForestClassifier,
    "MOA random patches (SRP)": StreamingRandomPatches,
    "MOA leveraging bagging": LeveragingBagging,
}


def measure(method, X, y):
    stream = NumpyStream(X, y)
    model, wrong = method(schema=stream.get_schema()), []
    start = time.process_time()
    while stream.has_more_instances():
        instance = stream.next_instance()
        wrong.append(model.predict(instance) != instance.y_index)
        model.train(instance)
    spent = time.process_time() - start
    return {
        "error": float(np.mean(wrong[FIRST:])),
        "microseconds": 1e6 * spent / len(y),
        "bytes": None,  # of Java's objects
    }


def versions():
    java = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr
    found = {name: importlib.metadata.version(name) for name in ("capymoa", "numpy")}
    return {"python": platform.python_version(), "java": java.splitlines()[0], **found}


def main():
    folder, results = map(Path, sys.argv[1:])
    records = {}
    for file in sorted(folder.glob("*.npz")):
        with np.load(file) as found:
            X, y = found["X"], found["y"]
        for name, method in METHODS.items():
            record = measure(method, X, y)
            records.setdefault(file.stem, {})[name] = record
            print(f"{file.stem}, {name}: {record['error']:.4f}", flush=True)
    written = {"records": records, "versions": versions()}
    results.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
