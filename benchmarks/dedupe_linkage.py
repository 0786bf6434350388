"""dedupe's own way to link the records of benchmarks/records.py: run by a Python that has dedupe.

    .venv-dedupe/bin/python benchmarks/dedupe_linkage.py --data FOLDER --out FILE

It compares fields by its own comparators, asks for the pairs that its learner of the moment is
least sure of, among those that share a blocking predicate or not, and is answered by what people
said of a pair; of others no. After so many answers its classifier is fitted to them all, and ranks
the test pairs.
"""

import argparse
import gzip
import json
import random
import re
import time
from pathlib import Path

import dedupe
import numpy as np
from dedupe import variables
from sklearn.metrics import average_precision_score

FIELDS = {
    "dblp": [
        variables.String("title"),
        variables.String("authors", has_missing=True),
        variables.String("venue", has_missing=True),
        variables.Exact("year", has_missing=True),
    ],
    "amazon": [
        variables.String("title"),
        variables.String("manufacturer", has_missing=True),
        variables.Price("price", has_missing=True),
    ],
}


def load(folder, name):
    with gzip.open(Path(folder) / f"records-{name}.json.gz", "rt", encoding="utf-8") as file:
        return json.load(file)


def cleaned(record):
    """As dedupe wants it: None where a value is missing, prices as numbers."""
    found = {field: (value or "").strip() or None for field, value in record.items()}
    if "price" in found:
        number = re.sub(r"[^\d.]", "", found["price"] or "")
        found["price"] = float(number) or None if number else None
    return found


def follow(folder, name, seed, looks):
    """AP on the test pairs after so many answers."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  by which dedupe draws
    found = load(folder, name)
    left, right = ([cleaned(each) for each in found[side]] for side in ("left", "right"))
    alike = {(i, j) for _, i, j, same in found["pairs"] if same}
    test = [(i, j, same) for part, i, j, same in found["pairs"] if part == "test"]
    # A record is known again by what it says: dedupe hands out no keys.
    keys = [{id(record): i for i, record in enumerate(side)} for side in (left, right)]
    linker = dedupe.RecordLink(FIELDS[name], num_cores=1)
    linker.prepare_training(dict(enumerate(left)), dict(enumerate(right)))
    distances = linker.data_model.distances([(left[i], right[j]) for i, j, _ in test])
    told, values, yes = 0, [], 0
    while told < looks[-1]:
        (a, b), *_ = linker.uncertain_pairs()
        same = (keys[0][id(a)], keys[1][id(b)]) in alike
        linker.mark_pairs(
            {"match" if same else "distinct": [(a, b)], "distinct" if same else "match": []}
        )
        told, yes = told + 1, yes + same
        if told in looks:
            values.append(_ap(linker, distances, [same for *_, same in test]))
    return {"ap": values, "yes": yes}


def _ap(linker, distances, alike):
    pairs = linker.training_pairs
    if not pairs["match"] or not pairs["distinct"]:
        return float(np.mean(alike))
    examples = [*pairs["distinct"], *pairs["match"]]
    y = np.repeat([0, 1], [len(pairs["distinct"]), len(pairs["match"])])
    linker.classifier.fit(linker.data_model.distances(examples), y)
    return float(average_precision_score(alike, linker.classifier.predict_proba(distances)[:, 1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--looks", type=int, nargs="+", required=True)
    asked = parser.parse_args()
    found = {}
    for name in FIELDS:
        before = time.process_time()
        runs = [follow(asked.data, name, seed, asked.looks) for seed in asked.seeds]
        found[name] = {key: [run[key] for run in runs] for key in runs[0]}
        found[name]["seconds"] = (time.process_time() - before) / len(runs)
        print(f"{name}: done", flush=True)
    asked.out.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
