import hashlib
import io
import tarfile
from urllib.error import URLError

import numpy as np
import pytest
import scipy.sparse as sp

from metrack.streams import Corpus, load_reviews, reviews
from tests.streams.reviews_data import REAL, WORDS, write_folder


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "processed_acl")


@pytest.fixture
def archive(folder, tmp_path):
    path = tmp_path / "processed_acl.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        file.add(folder, arcname="processed_acl")
    return path


@pytest.fixture
def npz(folder, tmp_path):
    corpus = load_reviews(folder)
    path = tmp_path / "reviews.npz"
    np.savez_compressed(
        path,
        data=corpus.counts.data.astype(np.uint16),
        indices=corpus.counts.indices.astype(np.uint16),
        indptr=corpus.counts.indptr,
        shape=corpus.counts.shape,
        vocab=corpus.words,
        category=corpus.labels["type"],
        sentiment=corpus.labels["sentiment"],
        category_names=["books", "electronics"],
    )
    return path


def test_published_format_is_counted_word_by_word(tmp_path):
    for category in ("books", "electronics"):
        for part in ("positive", "negative", "unlabeled"):
            path = tmp_path / category / f"{part}.review"
            path.parent.mkdir(exist_ok=True)
            path.write_text("")
    path = tmp_path / "books" / "unlabeled.review"
    path.write_text("good:2 a:1 good_a:1 #label#:positive\n\nbad:1 #label#:negative\n")
    path = tmp_path / "electronics" / "negative.review"
    path.write_text("a:b:3 good:1 #label#:negative\ngood:1 a:b:3 #label#:negative\n")
    corpus = load_reviews(tmp_path)
    assert corpus.words.tolist() == ["good", "a:b", "a", "bad"]  # the commonest first
    expected = [[2, 0, 1, 0], [0, 0, 0, 1], [1, 3, 0, 0]]  # and the fourth repeats the third
    assert corpus.counts.toarray().tolist() == expected
    assert corpus.labels["type"].tolist() == [0, 0, 1]
    assert corpus.labels["sentiment"].tolist() == [1, 0, 0]
    assert load_reviews(tmp_path, n_words=1).counts.toarray().tolist() == [[2], [1]]


def test_folder_archive_and_npz_give_the_same(folder, archive, npz, monkeypatch):
    corpus = load_reviews(folder)
    monkeypatch.setenv("METRACK_REVIEWS", str(npz))
    for other in (
        load_reviews(folder.parent),
        load_reviews(archive),
        load_reviews(npz),
        load_reviews(),
    ):
        assert (other.counts != corpus.counts).nnz == 0
        assert other.words.tolist() == corpus.words.tolist()
        for question, codes in corpus.labels.items():
            assert np.array_equal(other.labels[question], codes)
    words = set(corpus.words)
    assert words >= {word for each in WORDS.values() for word in each}
    assert not any("_" in word for word in words)


def test_a_number_of_reviews_is_always_the_same_draw(folder):
    corpus = load_reviews(folder, n_reviews=50)
    assert corpus.counts.shape[0] == 50
    assert (load_reviews(folder, n_reviews=50).counts != corpus.counts).nnz == 0
    assert load_reviews(folder, n_reviews=None).counts.shape[0] > 100


def test_an_npz_file_may_say_which_reviews(npz, monkeypatch):
    arrays = dict(np.load(npz))
    np.savez(npz, **arrays, paper_size_subset=np.array([3, 1]))
    kept = load_reviews(npz)
    assert np.array_equal(
        kept.counts.toarray(), load_reviews(npz, n_reviews=None).counts[[3, 1]].toarray()
    )


def test_unit_rows():
    corpus = Corpus(sp.csr_array([[3, 0], [1, 1]]), ["a", "b"], {"kind": [0, 1]})
    np.testing.assert_allclose(corpus.unit_rows().toarray(), [[1, 0], [0.5**0.5, 0.5**0.5]])
    assert corpus.counts.toarray().tolist() == [[3, 0], [1, 1]]


@pytest.mark.parametrize(
    ("words", "labels", "message"),
    [(["a"], {"k": [0, 1]}, "2 columns of counts, but 1 words"), (["a", "b"], {"k": [0]}, "'k'")],
)
def test_a_corpus_that_does_not_fit_together(words, labels, message):
    with pytest.raises(ValueError, match=message):
        Corpus(sp.csr_array([[3, 0], [1, 1]]), words, labels)


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("form", ["archive", "npz"])
def test_a_truncated_file_is_said_to_be_one(form, request):
    path = request.getfixturevalue(form)
    cut(path)
    with pytest.raises(ValueError, match=r"damaged|cut short"):
        load_reviews(path)


def test_wrong_files_are_refused(tmp_path, folder, npz):
    with pytest.raises(FileNotFoundError, match="no reviews at"):
        load_reviews(tmp_path / "none.npz")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ValueError, match="neither an npz file nor the published"):
        load_reviews(tmp_path / "text")
    np.savez(tmp_path / "other.npz", data=np.arange(3), indices=np.arange(3))
    with pytest.raises(ValueError, match="it has no array 'indptr'"):
        load_reviews(tmp_path / "other.npz")
    arrays = dict(np.load(npz))
    arrays["indptr"] = arrays["indptr"][::-1]
    np.savez(npz, **arrays)
    with pytest.raises(ValueError, match="damaged, or no file of reviews"):
        load_reviews(npz)
    np.savez(npz, **arrays | {"vocab": np.array([{}], dtype=object)})
    with pytest.raises(ValueError, match="damaged, or no file of reviews"):
        load_reviews(npz)  # nothing is unpickled
    (folder / "books" / "negative.review").write_text("good:1 #label#:negative\ngood: fine\n")
    with pytest.raises(ValueError, match=r"books/negative.review, line 2: not a review"):
        load_reviews(folder)
    (folder / "books" / "negative.review").unlink()
    with pytest.raises(FileNotFoundError, match=r"no books/negative.review in"):
        load_reviews(folder)


def answer(content, declared=None):
    found = io.BytesIO(content)
    found.headers = {"Content-Length": str(len(content) if declared is None else declared)}
    return found


def test_a_download_is_made_once_and_checked_ever_after(archive, tmp_path, monkeypatch):
    content, asked = archive.read_bytes(), []

    def urlopen(address, timeout):
        asked.append(address)
        return answer(content)

    monkeypatch.setattr(reviews, "urlopen", urlopen)
    monkeypatch.setattr(reviews, "PUBLISHED", {"books/positive.review": 20})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("METRACK_REVIEWS", raising=False)
    assert load_reviews().counts.shape == load_reviews(archive).counts.shape
    load_reviews()
    assert asked == [reviews.HOME + reviews.ARCHIVE]
    path = reviews.download(sha256=hashlib.sha256(content).hexdigest())
    with pytest.raises(ValueError, match="does not have the checksum 00"):
        reviews.download(sha256="00")
    cut(path)
    with pytest.raises(ValueError, match="delete it to download it again"):
        load_reviews()


@pytest.mark.parametrize("content", ["other reviews", "a page", "cut short"])
def test_a_download_that_is_not_what_was_published(content, archive, tmp_path, monkeypatch):
    data = archive.read_bytes()
    given = {"other reviews": data, "a page": b"<html>", "cut short": data[: len(data) // 2]}
    message = {"other reviews": r"books/positive.review has 20 reviews, and had 1,000"}
    monkeypatch.setattr(reviews, "urlopen", lambda address, timeout: answer(given[content]))
    with pytest.raises(ValueError, match=message.get(content, "cut short, or neither")):
        reviews.download(tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("trouble", ["no network", "broken off"])
def test_a_download_that_fails_leaves_nothing_behind(trouble, tmp_path, monkeypatch):
    def urlopen(address, timeout):
        if trouble == "no network":
            raise URLError("Name or service not known")
        return answer(b"half", declared=8)

    monkeypatch.setattr(reviews, "urlopen", urlopen)
    with pytest.raises(OSError, match=r"cannot download .*; download it elsewhere"):
        reviews.download(tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.skipif(not REAL.exists(), reason="the reviews are not here")
def test_the_real_reviews():
    corpus = load_reviews(REAL)
    assert corpus.counts.shape == (11_402, 2_369)
    assert np.bincount(corpus.labels["type"]).tolist() == [5_501, 5_901]
    assert len({row.tobytes() for row in corpus.counts[:2000].toarray()}) == 2000
    assert load_reviews(REAL, n_reviews=None).counts.shape[0] == 14_143 - 880  # repeat another
