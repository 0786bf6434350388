"""Amazon reviews as word counts, for the paper's second study, and any corpus in the same shape."""

import hashlib
import os
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metrack.checks import Ints, whole
from metrack.streams.base import generator

HOME = "https://www.cs.jhu.edu/~mdredze/datasets/sentiment/"
ARCHIVE = "processed_acl.tar.gz"
VARIABLE = "METRACK_REVIEWS"
PARTS = ("positive", "negative", "unlabeled")
PATIENCE = 60  # seconds without an answer
N_REVIEWS, N_WORDS = 11_402, 2_369  # the paper's
CATEGORIES = ("books", "electronics")
# Reviews in each file of the published archive that are known to be there.
PUBLISHED = {f"{each}/{part}.review": 1000 for each in CATEGORIES for part in PARTS[:2]}


@dataclass(frozen=True)
class Corpus:
    """Documents as word counts, and what is known of them.

    Parameters
    ----------
    counts : CSR matrix (n_documents, n_words)
    words : array (n_words,)
    labels : mapping from a question to an array (n_documents,)
        Class of each document, 0, 1, ..., for each way to sort them.
    names : mapping from a question to the names of its classes

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from metrack.streams import Corpus
    >>> Corpus(sp.csr_array([[2, 0], [0, 1]]), ["good", "bad"], {"sentiment": [1, 0]}).counts.shape
    (2, 2)
    """

    counts: sp.csr_array
    words: NDArray[np.str_]
    labels: Mapping[str, Ints]
    names: Mapping[str, Sequence[str]] | None = None

    def __post_init__(self) -> None:
        counts = sp.csr_array(self.counts)
        n_documents, n_words = counts.shape
        words = np.asarray(self.words)
        if words.shape != (n_words,):
            raise ValueError(f"there are {n_words} columns of counts, but {len(words)} words")
        labels = {name: np.asarray(codes, np.int64) for name, codes in self.labels.items()}
        for name, codes in labels.items():
            if codes.shape != (n_documents,) or codes.min(initial=0) < 0:
                raise ValueError(f"labels {name!r} must be whole numbers from 0, one per document")
        for field, value in (("counts", counts), ("words", words), ("labels", labels)):
            object.__setattr__(self, field, value)

    def take(self, rows: Ints) -> "Corpus":
        """Some of the documents."""
        labels = {name: codes[rows] for name, codes in self.labels.items()}
        return Corpus(self.counts[rows], self.words, labels, self.names)

    def unit_rows(self) -> sp.csr_array:
        """log(1 + count), each row scaled to length 1."""
        rows: sp.csr_array = self.counts.astype(np.float64)
        np.log1p(rows.data, out=rows.data)
        lengths = np.sqrt(rows.multiply(rows).sum(axis=1))
        rows.data /= np.repeat(lengths, np.diff(rows.indptr))
        return rows


def load_reviews(
    path: str | Path | None = None,
    categories: Sequence[str] = CATEGORIES,
    n_reviews: int | None = N_REVIEWS,
    n_words: int = N_WORDS,
) -> Corpus:
    """Reviews of the Multi-Domain Sentiment Dataset (Blitzer, Dredze and Pereira, 2007).

    Reviews with the same counts as an earlier one are left out.

    Parameters
    ----------
    path : path, optional
        The published archive ``processed_acl.tar.gz``, the folder in it, or an npz file with the
        arrays ``data``, ``indices``, ``indptr``, ``shape``, ``vocab``, ``category`` and
        ``sentiment``. By default what the environment variable METRACK_REVIEWS names, else the
        archive, downloaded once from the dataset's home page.
    categories : sequence of str
        Folders of the archive that are read: the product types.
    n_reviews : int or None
        Keep at most so many, drawn at random, always the same; an npz file may say which
        (``paper_size_subset``). None: all.
    n_words : int
        Words of the archive that are counted: those that occur in most reviews.

    Returns
    -------
    Corpus
        Questions are "type" (of the product) and "sentiment" (0 negative, 1 positive).
    """
    found = Path(path or os.environ.get(VARIABLE) or download())
    if not found.exists():
        raise FileNotFoundError(
            f"no reviews at {found}; give the published {ARCHIVE}, its folder, or an npz file"
        )
    if found.is_dir():
        return _kept(_published(_from_folder(found, categories), categories, n_words), n_reviews)
    if found.suffix == ".npz" or zipfile.is_zipfile(found):
        return _from_npz(found, n_reviews)
    return _kept(_published(_from_archive(found, categories), categories, n_words), n_reviews)


def _from_npz(path: Path, n_reviews: int | None) -> Corpus:
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is cut short, or no npz file")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        parts = arrays["data"], arrays["indices"].astype(np.int32), arrays["indptr"]
        counts = sp.csr_array(parts, shape=tuple(arrays["shape"].tolist()))
        counts.check_format(full_check=True)
        names = {"sentiment": ("negative", "positive")}
        if "category_names" in arrays:
            names["type"] = tuple(arrays["category_names"].tolist())
        labels = {"type": arrays["category"], "sentiment": arrays["sentiment"]}
        corpus = Corpus(counts, arrays["vocab"], labels, names)
    except KeyError as error:
        raise ValueError(f"{path} is no file of reviews: it has no array {error}") from None
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} is damaged, or no file of reviews: {error}") from None
    if n_reviews == N_REVIEWS and "paper_size_subset" in arrays:
        return corpus.take(arrays["paper_size_subset"])
    return _kept(corpus, n_reviews)


def _kept(corpus: Corpus, n_reviews: int | None) -> Corpus:
    """Without repeated and empty rows, and no more than asked for."""
    counts, seen, rows = corpus.counts, set(), []
    for i, (start, stop) in enumerate(zip(counts.indptr, counts.indptr[1:], strict=False)):
        key = counts.indices[start:stop].tobytes(), counts.data[start:stop].tobytes()
        if stop > start and key not in seen:
            seen.add(key)
            rows.append(i)
    kept: Ints = np.array(rows, dtype=np.int64)
    if n_reviews is not None and whole("n_reviews", n_reviews, least=2) < len(kept):
        kept = np.sort(generator(0, "reviews").choice(kept, n_reviews, replace=False))
    return corpus.take(kept)


def _published(
    files: Iterable[tuple[str, IO[bytes]]], categories: Sequence[str], n_words: int
) -> Corpus:
    """Count the words of reviews, one per line: ``word:2 two_words:1 ... #label#:positive``."""
    documents: list[dict[str, int]] = []
    labels: dict[str, list[int]] = {"type": [], "sentiment": []}
    for name, file in files:
        for number, line in enumerate(file, start=1):
            if line.strip():
                counted, positive = _review(line, f"{name}, line {number}")
                documents.append(counted)
                labels["type"].append(list(categories).index(name.split("/")[0]))
                labels["sentiment"].append(int(positive))
    if not documents:
        raise ValueError("there are no reviews in these files")
    common = Counter(word for counted in documents for word in counted)
    words = [word for word, _ in sorted(common.items(), key=lambda each: (-each[1], each[0]))]
    column = {word: i for i, word in enumerate(words[: whole("n_words", n_words)])}
    indptr, indices, data = [0], [], []
    for counted in documents:
        known = sorted((column[word], n) for word, n in counted.items() if word in column)
        indices += [i for i, _ in known]
        data += [n for _, n in known]
        indptr.append(len(indices))
    counts = sp.csr_array((data, indices, indptr), shape=(len(documents), len(column)))
    names = {"type": tuple(categories), "sentiment": ("negative", "positive")}
    codes = {question: np.array(each) for question, each in labels.items()}
    return Corpus(counts, np.array(list(column)), codes, names)


def _review(line: bytes, where: str) -> tuple[dict[str, int], bool]:
    """Counts of single words, and whether the review is positive."""
    try:
        *tokens, label = line.decode("utf-8", errors="replace").split()
        key, _, sentiment = label.rpartition(":")
        counts = {}
        for token in tokens:
            word, _, count = token.rpartition(":")
            if "_" not in word:  # else it is two words
                counts[word] = int(count)
        if key == "#label#" and sentiment in ("positive", "negative"):
            return counts, sentiment == "positive"
    except ValueError:
        pass
    raise ValueError(
        f"{where}: not a review; expected word:count word:count ... #label#:positive or :negative"
    )


def _from_folder(folder: Path, categories: Sequence[str]) -> Iterator[tuple[str, IO[bytes]]]:
    inside = folder / "processed_acl"
    folder = inside if inside.is_dir() else folder
    for name in _names(categories):
        path = folder / name
        if not path.is_file():
            raise FileNotFoundError(f"no {name} in {folder}; give the folder of the whole archive")
        with path.open("rb") as file:
            yield name, file


def _from_archive(path: Path, categories: Sequence[str]) -> Iterator[tuple[str, IO[bytes]]]:
    try:
        with tarfile.open(path) as archive:
            members = {"/".join(Path(name).parts[-2:]): name for name in archive.getnames()}
            for name in _names(categories):
                file = archive.extractfile(members[name]) if name in members else None
                if file is None:
                    raise ValueError(f"{path} has no {name}; give the published {ARCHIVE}")
                yield name, file
    except (tarfile.TarError, EOFError, zlib.error):
        raise ValueError(
            f"{path} is cut short, or neither an npz file nor the published {ARCHIVE}"
        ) from None


def _names(categories: Sequence[str]) -> Iterator[str]:
    for category in categories:
        for part in PARTS:
            yield f"{category}/{part}.review"


def download(folder: Path | None = None, sha256: str | None = None) -> Path:
    """Fetch the published archive, once.

    The dataset's home page gives no checksum. So the first download must be an archive of reviews
    that holds as many labelled ones as the published one. Its checksum is then kept beside the
    file, and what is in the cache must have it ever after.

    Parameters
    ----------
    folder : Path, optional
        Where to keep it; by default ``metrack`` in the user's cache.
    sha256 : str, optional
        Checksum that the archive must have.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "metrack"
    path = (folder or cache) / ARCHIVE
    note = path.with_name(ARCHIVE + ".sha256")
    if not path.exists() or not note.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{ARCHIVE}.{os.getpid()}.part")
        try:
            _fetch(HOME + ARCHIVE, partial)
            if sha256 is None:
                _check_published(partial)
            note.write_text(_digest(partial), encoding="ascii")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    expected = sha256 or note.read_text(encoding="ascii").strip()
    if _digest(path) != expected:
        raise ValueError(
            f"{path} does not have the checksum {expected}; delete it to download it again"
        )
    return path


def _check_published(path: Path) -> None:
    """Refuse a download that is not the published archive, as far as it is known."""
    for name, file in _from_archive(path, CATEGORIES):
        lines = [line for line in file if line.strip()]
        for number, line in enumerate(lines, start=1):
            _review(line, f"{name}, line {number}")
        if len(lines) != PUBLISHED.get(name, len(lines)):
            raise ValueError(
                f"{HOME + ARCHIVE} is not what was published: {name} has {len(lines):,} reviews, "
                f"and had {PUBLISHED[name]:,}; give the path of the published {ARCHIVE}"
            )


def _fetch(address: str, path: Path) -> None:
    try:
        with urlopen(address, timeout=PATIENCE) as answer, path.open("wb") as file:
            size = answer.headers.get("Content-Length")
            while block := answer.read(1 << 20):
                file.write(block)
        if size is not None and path.stat().st_size != int(size):
            raise URLError("the connection broke off")
    except (URLError, TimeoutError, ConnectionError) as error:
        raise OSError(
            f"cannot download {address} ({getattr(error, 'reason', error)}); download it "
            f"elsewhere, and give its path or set {VARIABLE} to it"
        ) from None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
