"""Run by `make test-browser`, which sees to it that there is a browser."""

import os
import shutil

import numpy as np
import pytest

from docs.figures import make_serve_pictures as filled
from metrack import Client
from tests.serve.conftest import spawner as spawner

if "METRACK_BROWSER" not in os.environ:
    collect_ignore_glob = ["test_*.py"]

FEATURES = ["price", "size", "age", "colour"]


class Watched:
    """A page, and all that went wrong on it."""

    def __init__(self, browser, server, **look):
        self.context = browser.new_context(base_url=server.url, **look)
        filled.with_images(self.context)
        self.page = self.context.new_page()
        self.wrong = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", self._asked)
        self.urls = server.url, filled.ADDRESS, "data:"

    def _heard(self, message):
        if message.type in ("error", "warning"):
            self.wrong.append(message.text)

    def _asked(self, request):
        if not request.url.startswith(self.urls):
            self.wrong.append(f"asked {request.url}")

    def open(self, path):
        self.page.goto(path)
        return self.page

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()
        assert self.wrong == []


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    path = os.environ.get("METRACK_BROWSER") or shutil.which("chromium")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


def fill(client, name, n_pairs=0):
    """A metric of 60 items; with judgements, what is alike changes from price to size."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 4))
    client.create(name, 4, features=FEATURES)
    client.put_items(name, [f"item {i}" for i in range(60)], points)
    if not n_pairs:
        return
    rows = rng.integers(60, size=(n_pairs, 2))
    apart = np.abs(points[rows[:, 0]] - points[rows[:, 1]])
    half = n_pairs // 2
    y = np.where(np.append(apart[:half, 0], apart[half:, 1]) < 0.7, 1, -1)
    receipt = client.feedback(name, points[rows], y, judge="robot")
    client.describe(name, min_sequence=receipt.sequence, timeout=60)


@pytest.fixture(scope="session")
def server(spawner, tmp_path_factory):
    """With 500 items as images, as texts and as records; and a metric without anything."""
    found = spawner.start(tmp_path_factory.mktemp("serve") / "data").wait()
    with Client(found.url) as client:
        filled.filled(client)
        client.create("empty", 2)
    yield found
    found.end()


@pytest.fixture
def client(server):
    with Client(server.url) as found:
        yield found
