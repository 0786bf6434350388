"""Reviews for tests: a few made up in the published format, and the real ones where there are."""

import os
from pathlib import Path

import numpy as np

BESIDE = Path(__file__).parents[3] / "shared" / "data" / "reviews.npz"
REAL = Path(os.environ.get("METRACK_REVIEWS") or BESIDE)

WORDS = {
    "books": ["novel", "author", "chapter", "plot"],
    "electronics": ["battery", "cable", "screen", "plug"],
    "positive": ["great", "love", "excellent"],
    "negative": ["poor", "waste", "broken"],
}
COMMON = [f"word{i}" for i in range(12)]


def write_folder(folder, n_reviews=120, seed=0):
    """A folder as the published archive has it; reviews are spread over its files."""
    rng = np.random.default_rng(seed)
    files = {}
    for i in range(n_reviews):
        category = ("books", "electronics")[i % 2]
        sentiment = ("negative", "positive")[i // 2 % 2]
        part = sentiment if i % 3 else "unlabeled"
        words = [*rng.choice(COMMON, 5), *rng.choice(WORDS[category], 2)]
        words += rng.choice(WORDS[sentiment], 2).tolist()
        counts = {word: words.count(word) for word in words}
        line = " ".join(f"{word}:{n}" for word, n in counts.items())
        line += f" two_{category}:1 #label#:{sentiment}\n"
        files.setdefault(f"{category}/{part}.review", []).append(line)
    for name, lines in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(lines))
    return folder
