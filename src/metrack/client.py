"""A client of ``metrack serve``, on the standard library and numpy alone."""

import http.client
import json
import random
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlsplit

import numpy as np
from numpy.typing import ArrayLike

from metrack.checks import Floats

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
AGAIN = frozenset({429, 502, 503, 504})  # answers after which the same request may be sent again
LONGEST_WAIT = 10.0  # seconds


class ServeError(Exception):
    """A request that the server refused; the message is the server's.

    Attributes
    ----------
    status : int
    request : str or None
        By which the server's log has it.
    """

    def __init__(self, status: int, message: str, request: str | None = None) -> None:
        super().__init__(f"{status}: {message}")
        self.status, self.request = status, request


class Receipt(NamedTuple):
    """What became of feedback."""

    accepted: int
    duplicates: int
    sequence: int


class Client:
    """A metric on a server.

    What fails on the way is tried again. That is safe: every judgement has an id, by which the
    server knows those that it has already. Threads may share a client.

    Parameters
    ----------
    url : str
        Of the server, such as ``http://127.0.0.1:8000``.
    token : str, optional
    timeout : float
        Seconds for an answer; `describe` may wait up to 60.
    retries : int
        How often a request is sent again, with growing pauses.

    Examples
    --------
    .. code-block:: python

        client = metrack.Client("http://127.0.0.1:8000")
        client.create("shop", n_features=3)
        client.feedback("shop", [[[1, 2, 3], [1, 2, 4]]], [1])
        client.distance("shop", [[[1, 2, 3], [1, 2, 4]]])
    """

    def __init__(
        self, url: str, token: str | None = None, timeout: float = 70.0, retries: int = 6
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url={url!r}; give an address such as http://127.0.0.1:8000")
        self.url, self.token = url.rstrip("/"), token
        self.timeout, self.retries = timeout, retries
        self._parts = parts
        self._own = threading.local()

    def create(
        self,
        name: str,
        n_features: int,
        estimator: str = "MetricTracker",
        settings: Mapping[str, Any] | None = None,
        features: Sequence[str] | None = None,
        question: str | None = None,
        instructions: str | None = None,
    ) -> dict[str, Any]:
        """Make a metric; where it is there and the same, nothing happens.

        Parameters
        ----------
        name : str
        n_features : int
        estimator : str
        settings : dict, optional
        features : sequence of str, optional
            Their names.
        question, instructions : str, optional
            For those who judge; they may be changed later.
        """
        body: dict[str, Any] = {"n_features": n_features, "estimator": estimator}
        body |= {"settings": dict(settings or {})}
        if features is not None:
            body["features"] = list(features)
        told = {"question": question, "instructions": instructions}
        body |= {key: text for key, text in told.items() if text is not None}
        return self._json("PUT", self._path(name), body)

    def delete(self, name: str) -> None:
        """Delete a metric and all that belongs to it."""
        self.request("DELETE", self._path(name))

    def describe(self, name: str, min_sequence: int = 0, timeout: float = 5.0) -> dict[str, Any]:
        """Where a metric stands, once so much was learned.

        Raises
        ------
        ServeError
            With status 408, where it was not within ``timeout`` seconds.
        """
        query = f"?min_sequence={min_sequence}&timeout={timeout}" if min_sequence else ""
        return self._json("GET", self._path(name) + query)

    def feedback(
        self,
        name: str,
        pairs: Any,
        y: ArrayLike,
        ids: Sequence[str] | None = None,
        judge: str | None = None,
    ) -> Receipt:
        """Send judgements; they are on the server's disk when this returns.

        Parameters
        ----------
        name : str
        pairs : array (n_pairs, 2, n_features), or pairs of ids of items
        y : array (n_pairs,)
            +1 alike, -1 not alike, or 1 and 0, or booleans; None unsure.
        ids : sequence of str, optional
            One for each judgement, by which repeated ones are known. Give those of your own system
            where there are any; otherwise each call makes new ones.
        judge : str, optional

        Returns
        -------
        Receipt
            ``accepted``, ``duplicates`` and ``sequence``, which `describe` can wait for.
        """
        labels = [None if each is None else float(each) for each in np.asarray(y).tolist()]
        keys = [str(uuid.uuid4()) for _ in labels] if ids is None else [str(i) for i in ids]
        given, n_pairs = _pair_columns(pairs)
        if not n_pairs == len(labels) == len(keys):
            raise ValueError(f"{n_pairs} pairs, {len(labels)} labels, {len(keys)} ids")
        columns = {**given, "y": labels, "id": keys}
        if judge is not None:
            columns["judge"] = [judge] * n_pairs
        found = self._pairs(self._path(name, "feedback"), columns)
        return Receipt(**found)

    def put_items(
        self,
        name: str,
        ids: Sequence[str],
        vectors: ArrayLike,
        texts: Sequence[str | None] | None = None,
        images: Sequence[str | None] | None = None,
        records: Sequence[Mapping[str, Any] | None] | None = None,
    ) -> int:
        """Add items or change them, with what judges see of them; returns how many there are.

        Parameters
        ----------
        name : str
        ids : sequence of str
        vectors : array (n_items, n_features)
        texts, images : sequence of str, optional
            Images by their addresses.
        records : sequence of dict, optional
            Fields by name, which judges see side by side.
        """
        body: dict[str, Any] = {"ids": list(ids), "vectors": np.asarray(vectors, float).tolist()}
        if texts is not None:
            body["texts"] = list(texts)
        if images is not None:
            body["images"] = list(images)
        if records is not None:
            body["records"] = [None if each is None else dict(each) for each in records]
        return int(self._json("PUT", self._path(name, "items"), body)["items"])

    def distance(self, name: str, pairs: Any) -> Floats:
        """Learned distances of pairs of points, or of ids of items."""
        found = self._pairs(self._path(name, "distance"), _pair_columns(pairs)[0])
        return np.array(found["distances"])

    def probability(self, name: str, of: Any) -> Floats:
        """How likely pairs of points, or of ids of items, are alike.

        Of a metric that predicts classes: how likely points, or items by id, are of each class; an
        array (n_points, n_classes), with classes in the order in which they came.
        """
        path = self._path(name, "probability")
        single = len(of) > 0 and (isinstance(of[0], str) or np.ndim(of[0]) == 1)
        if single and not (isinstance(of[0], tuple | list) and isinstance(of[0][0], str)):
            return np.array(self._json("POST", path, _points_body(of))["probabilities"])
        return np.array(self._pairs(path, _pair_columns(of)[0])["probabilities"])

    def transform(self, name: str, X: Any) -> Floats:
        """Points, or items by id, where Euclidean distance is the learned one."""
        path = self._path(name, "transform")
        return np.array(self._json("POST", path, _points_body(X))["vectors"])

    def neighbours(self, name: str, of: Any, k: int = 10) -> list[tuple[str, float]]:
        """Nearest items of an item or a point, with their distances."""
        body = {"id": of} if isinstance(of, str) else {"vector": np.asarray(of, float).tolist()}
        found = self._json("POST", self._path(name, "neighbours"), {**body, "k": k})
        return [(each["id"], each["distance"]) for each in found["neighbours"]]

    def suggest(self, name: str, n: int = 1, judge: str | None = None) -> list[tuple[str, str]]:
        """Pairs of items to judge next."""
        body: dict[str, Any] = {"n": n} if judge is None else {"n": n, "judge": judge}
        found = self._json("POST", self._path(name, "suggest"), body)
        return [(each["a"]["id"], each["b"]["id"]) for each in found["pairs"]]

    def progress(self, name: str) -> dict[str, Any]:
        """How far judging has come, and whether to ``stop``; as `ActiveTracker.progress`."""
        return self._json("GET", self._path(name, "progress"))

    def correct(
        self, name: str, sequence: int, y: float | None, judge: str | None = None
    ) -> Receipt:
        """Put another answer in the place of a judgement; None: unsure."""
        body = {"sequence": sequence, "y": y, "judge": judge, "id": str(uuid.uuid4())}
        return Receipt(**self._json("POST", self._path(name, "corrections"), body))

    def close(self) -> None:
        """Close the calling thread's connection."""
        connection = getattr(self._own, "connection", None)
        if connection is not None:
            connection.close()
            del self._own.connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = JSON
    ) -> bytes:
        """Send a request, again and again where that may help; returns the answer's body."""
        headers = {"content-type": content_type}
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        for attempt in range(self.retries + 1):
            try:
                answer = self._send(method, path, body, headers)
            except (OSError, http.client.HTTPException):
                self.close()
                if attempt == self.retries:
                    raise
                time.sleep(_pause(attempt))
                continue
            if answer.status < 400:
                return answer.body
            if answer.status not in AGAIN or attempt == self.retries:
                raise ServeError(answer.status, _detail(answer.body), answer.request)
            time.sleep(max(_pause(attempt), answer.retry_after))
        raise AssertionError

    def _send(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> "_Answer":
        connection = getattr(self._own, "connection", None)
        if connection is None:
            secure = self._parts.scheme == "https"
            kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            host = self._parts.hostname
            assert host is not None
            connection = kind(host, self._parts.port, timeout=self.timeout)
            self._own.connection = connection
        connection.request(method, self._parts.path.rstrip("/") + path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        after = answer.headers.get("retry-after", "0")
        wait = min(float(after) if after.isdigit() else 0.0, LONGEST_WAIT)
        return _Answer(answer.status, data, wait, answer.headers.get("x-request-id"))

    def _json(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        found: dict[str, Any] = json.loads(self.request(method, path, data))
        return found

    def _pairs(self, path: str, columns: dict[str, Any]) -> dict[str, Any]:
        """Send pairs: as Arrow where pyarrow is there, which takes a tenth of the time."""
        try:
            body, kind = _as_arrow(columns), ARROW
        except ImportError:
            listed = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in columns.items()}
            rows = zip(*listed.values(), strict=True)
            pairs = [dict(zip(listed, row, strict=True)) for row in rows]
            body, kind = json.dumps({"pairs": pairs}).encode(), JSON
        found: dict[str, Any] = json.loads(self.request("POST", path, body, kind))
        return found

    @staticmethod
    def _path(name: str, what: str = "") -> str:
        return f"/v1/metrics/{quote(name, safe='')}" + (f"/{what}" if what else "")


class _Answer(NamedTuple):
    status: int
    body: bytes
    retry_after: float
    request: str | None


def _points_body(X: Any) -> dict[str, Any]:
    """Points, or ids of items."""
    if len(X) > 0 and isinstance(X[0], str):
        return {"ids": list(X)}
    return {"vectors": np.asarray(X, float).tolist()}


def _pair_columns(pairs: Any) -> tuple[dict[str, Any], int]:
    """Points x and z, or ids a and b; and how many there are."""
    if len(pairs) and isinstance(pairs[0][0], str):
        a, b = zip(*pairs, strict=True)
        return {"a": list(a), "b": list(b)}, len(pairs)
    points = np.asarray(pairs, dtype=float)
    if points.ndim != 3 or points.shape[1] != 2:
        raise ValueError(f"pairs must have shape (n_pairs, 2, n_features), got {points.shape}")
    return {"x": points[:, 0], "z": points[:, 1]}, len(points)


def _as_arrow(columns: dict[str, Any]) -> bytes:
    import pyarrow as pa

    arrays = {
        name: pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
        if isinstance(values, np.ndarray)
        else pa.array(values)
        for name, values in columns.items()
    }
    table, sink = pa.table(arrays), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _pause(attempt: int) -> float:
    """Longer and longer, and not the same for all who wait."""
    return min(0.1 * 2.0**attempt, LONGEST_WAIT) * random.uniform(0.5, 1.0)


def _detail(body: bytes) -> str:
    try:
        return str(json.loads(body)["detail"])
    except (ValueError, KeyError, TypeError):
        return body[:200].decode("utf-8", "replace")
