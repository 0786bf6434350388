"""Pictures of the pages of `metrack serve`, of items as images, texts and records.

    python -m docs.figures.make_serve_pictures

needs a chromium, as `make test-browser` does. The tests of the pages use the same items.
"""

import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from metrack import Client

HERE = Path(__file__).parent
N_ITEMS = 500
ADDRESS = "http://digits.example"
TOPICS = {
    "travel": "flight hotel train ticket luggage beach map passport",
    "food": "bread soup cheese dinner apple pepper kitchen spice",
    "sport": "goal match referee team race tennis ball coach",
    "money": "bank loan interest card account fee transfer price",
}
FORMS = (
    "The {} was late, so we took the {} and a {} instead; nobody asked about the {}.",
    "Is a {} cheaper than a {}? I had a {} and no {} at all.",
    "My {} and the {} were fine, the {} was not, and the {} never came.",
)
BRANDS, KINDS = ("Alba", "Borel", "Cirrus", "Dorn"), ("boots", "sandals", "trainers")
COLOURS = ("red", "blue", "green", "black")
AT_A_TIME = 100


def judge(client, name, ids, rows, y, who):
    """Answers as a judge sends them."""
    pairs = [(ids[a], ids[b]) for a, b in rows]
    for start in range(0, len(pairs), AT_A_TIME):
        some = slice(start, start + AT_A_TIME)
        client.feedback(name, pairs[some], y[some], judge=who)


def some_rows(rng, n_pairs):
    """Different items."""
    rows = rng.integers(N_ITEMS, size=(2 * n_pairs, 2))
    return rows[rows[:, 0] != rows[:, 1]][:n_pairs]


def images(client, name="digits"):
    """Digits as images: two judges, who agree but for a few."""
    points, digit = load_digits(return_X_y=True)
    ids = [f"digit {i}" for i in range(N_ITEMS)]
    told = "Look at the shape alone.\nIf you cannot read one of them, say that you are unsure."
    question = "Do these two show the same digit?"
    client.create(name, 64, question=question, instructions=told)
    addresses = [f"{ADDRESS}/{i}.png" for i in range(N_ITEMS)]
    client.put_items(name, ids, points[:N_ITEMS], images=addresses)
    rows = some_rows(np.random.default_rng(0), 120)
    y = np.where(digit[rows[:, 0]] == digit[rows[:, 1]], 1, -1)
    judge(client, name, ids, rows, y, "ann")
    contrary = np.isin(np.arange(40), (3, 11, 17, 30))
    judge(client, name, ids, rows[:40], np.where(contrary, -y[:40], y[:40]), "bob")


@cache
def image_of(i):
    """A digit as PNG."""
    import matplotlib.image

    pixels = load_digits().images[i]
    made = io.BytesIO()
    large = np.kron(pixels, np.ones((16, 16)))
    matplotlib.image.imsave(made, large, cmap="gray_r", vmin=0, vmax=16, format="png")
    return made.getvalue()


def texts(client, name="tickets"):
    """Short texts of four topics, by their words."""
    rng = np.random.default_rng(1)
    words = {topic: each.split() for topic, each in TOPICS.items()}
    features = [word for each in words.values() for word in each]
    topic = rng.integers(len(words), size=N_ITEMS)
    written = []
    for k in topic:
        own = rng.choice(list(words.values())[k], 3, replace=False)
        written.append(rng.choice(FORMS).format(*own, rng.choice(features)))
    counts = [[text.split().count(word) for word in features] for text in written]
    points = np.array(counts) + 0.05 * rng.normal(size=(N_ITEMS, len(features)))
    ids = [f"ticket {i}" for i in range(N_ITEMS)]
    question = "Are these two about the same thing?"
    client.create(name, len(features), features=features, question=question)
    client.put_items(name, ids, points, texts=written)
    rows = some_rows(rng, 400)
    judge(client, name, ids, rows, np.where(topic[rows[:, 0]] == topic[rows[:, 1]], 1, -1), "eve")


def records(client, name="shop"):
    """Shoes as records: from price and size, what counts changes to rating and brand."""
    rng = np.random.default_rng(2)
    price, rating = rng.gamma(3, 20, N_ITEMS).round(2), rng.uniform(1, 5, N_ITEMS).round(1)
    size, age = rng.integers(34, 48, N_ITEMS), rng.integers(0, 24, N_ITEMS)
    brand = rng.integers(4, size=N_ITEMS)
    points = np.column_stack(
        [np.log(price), (size - 41) / 4, age / 7, rating - 3, 1.4 * np.eye(4)[brand]]
    )
    features = ["price", "size", "age", "rating", *(f"brand {each}" for each in BRANDS)]
    question = "Would you offer one in the place of the other?"
    client.create(name, 8, features=features, question=question)
    shown = [
        {
            "name": f"{rng.choice(COLOURS)} {rng.choice(KINDS)}",
            "brand": BRANDS[brand[i]],
            "price": float(price[i]),
            "size": int(size[i]),
            "weeks in stock": int(age[i]),
            "rating": float(rating[i]),
            "returned": None if i % 3 else "once",
        }
        for i in range(N_ITEMS)
    ]
    ids = [f"A-{1000 + i}" for i in range(N_ITEMS)]
    client.put_items(name, ids, points, records=shown)
    rows = some_rows(rng, 4000)
    apart = np.abs(points[rows[:, 0]] - points[rows[:, 1]])
    first = (apart[:, 0] < 1.0) & (apart[:, 1] < 1.5)
    then = (apart[:, 3] < 1.2) & (apart[:, 4:].max(axis=1) < 0.5)
    y = np.where(np.where(np.arange(4000) < 2000, first, then), 1, -1)
    client.feedback(name, points[rows], y)
    judge(client, name, ids, rows[-60:], y[-60:], "ann")


FILLED = {"digits": images, "tickets": texts, "shop": records}


def filled(client):
    """All three, learned."""
    for name, fill in FILLED.items():
        fill(client, name)
        sequence = client.describe(name)["sequence"]
        client.describe(name, min_sequence=sequence, timeout=60)


def with_images(context):
    """Let a browser find the images, which no server has."""

    def answer(route):
        number = int(route.request.url.rpartition("/")[2].partition(".")[0])
        route.fulfill(body=image_of(number), content_type="image/png")

    context.route(f"{ADDRESS}/*", answer)


SHOWN = {  # what is kept: page, width, height, colours
    "serve-home": ("/", 1280, None, "light"),
    "serve-metric": ("/m/shop", 1280, None, "light"),
    "serve-judge-texts": ("/m/tickets/judge", 900, 560, "light"),
    "serve-judge-records": ("/m/shop/judge", 900, 680, "dark"),
    "serve-judge-images": ("/m/digits/judge", 400, 900, "light"),
}


def take(url):
    """Take all pictures."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("METRACK_BROWSER") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name, (page, width, height, colours) in SHOWN.items():
            context = browser.new_context(
                viewport={"width": width, "height": height or 900}, color_scheme=colours
            )
            with_images(context)
            context.add_init_script("localStorage.setItem('judge', 'ann')")
            shown = context.new_page()
            shown.goto(url + page)
            shown.wait_for_timeout(3000)  # until all has come and nothing moves
            shown.screenshot(path=HERE / f"{name}.png", full_page=height is None)
            context.close()
        browser.close()


def main():
    """Serve, fill, take pictures."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "metrack.cli", "serve", folder, "--port", str(port)]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            with Client(f"http://127.0.0.1:{port}", retries=12) as client:
                filled(client)
            take(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
