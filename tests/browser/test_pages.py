"""The pages in a real browser: they show, they judge, by keyboard, in light and dark, small."""

import base64
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from axe_core_python.sync_playwright import Axe
from playwright.sync_api import expect

from metrack import Client
from metrack.serve.tokens import add_token
from tests.browser.conftest import fill

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
SHOTS = os.environ.get("METRACK_SHOTS")  # a folder, to look at
PAGES = {"all": "/", "metric": "/m/shop", "empty": "/m/empty", "judge": "/m/shop/judge"}
LOOKS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1200, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1200, "height": 900}},
    "small": {"color_scheme": "light", "viewport": {"width": 400, "height": 800}},
}


class Watched:
    """A page, and all that went wrong on it."""

    def __init__(self, browser, server, **look):
        self.context = browser.new_context(base_url=server.url, **look)
        self.page = self.context.new_page()
        self.wrong = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", self._asked)
        self.url = server.url

    def _heard(self, message):
        if message.type in ("error", "warning"):
            self.wrong.append(message.text)

    def _asked(self, request):
        if not request.url.startswith((self.url, "data:")):
            self.wrong.append(f"asked {request.url}")

    def open(self, path):
        self.page.goto(path)
        return self.page

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()
        assert self.wrong == []


def settled(page, name):
    """Until all is drawn."""
    if name == "all":
        expect(page.get_by_role("link", name="shop", exact=True)).to_be_visible()
    elif name == "metric":
        expect(page.locator("#losses svg")).to_be_visible()
        expect(page.locator("#embedding circle")).to_have_count(60)
        page.wait_for_timeout(900)
    elif name == "empty":
        expect(page.get_by_text("There are no items.")).to_be_visible()
    else:
        expect(page.locator("#left")).to_contain_text("item")


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_pages_show_without_faults(browser, server, name, look):
    with Watched(browser, server, **LOOKS[look]) as watched:
        page = watched.open(PAGES[name])
        settled(page, name)
        if SHOTS:
            page.screenshot(path=Path(SHOTS) / f"{name}-{look}.png", full_page=True)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= LOOKS[look]["viewport"]["width"], "it scrolls sideways"
        found = Axe().run(page)["violations"]
        grave = [each for each in found if each["impact"] in ("serious", "critical")]
        assert grave == [], json.dumps(grave, indent=1)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_load_settles(server, name, tmp_path):
    """A virtual clock stands still while a request is open: with one that never ends, for ever."""
    chromium = os.environ["METRACK_BROWSER"], "--headless=new", "--no-sandbox", "--disable-gpu"
    options = "--virtual-time-budget=3000", f"--user-data-dir={tmp_path}", "--dump-dom"
    url = server.url + PAGES[name]
    found = subprocess.run([*chromium, *options, url], capture_output=True, text=True, timeout=60)
    shown = {"all": ">shop</a>", "metric": "<circle", "empty": "no items", "judge": "item "}
    assert shown[name] in found.stdout


def test_home_needs_no_scrolling_sideways(browser, server):
    with Watched(browser, server, **LOOKS["small"]) as watched:
        page = watched.open("/")
        settled(page, "all")
        wide = "nodes => nodes.filter(n => n.scrollWidth > n.clientWidth).map(n => n.outerHTML)"
        assert page.locator("main, .panel").evaluate_all(wide) == []
        expect(page.get_by_role("link", name="judge pairs of shop")).to_be_in_viewport()


def test_items_are_shown_as_soon_as_there_are_some(browser, server, client):
    client.create("late", 64)
    with Watched(browser, server) as watched:
        page = watched.open("/m/late")
        expect(page.get_by_text("There are no items.")).to_be_visible()
        points = np.random.default_rng(0).normal(size=(500, 64))
        client.put_items("late", [str(i) for i in range(500)], points)
        expect(page.locator("#embedding circle")).to_have_count(500)
    client.delete("late")


def test_one_judgement_is_one_pair(browser, server, client):
    client.create("one", 2)
    receipt = client.feedback("one", [[[1, 2], [3, 4]]], [1])
    client.describe("one", min_sequence=receipt.sequence, timeout=60)
    with Watched(browser, server) as watched:
        page = watched.open("/m/one")
        expect(page.locator("#facts")).to_contain_text("1 pair")
        expect(page.locator("#facts")).not_to_contain_text("1 pairs")
    client.delete("one")


def test_metric_page_tells_what_the_server_knows(browser, server, client):
    with Watched(browser, server) as watched:
        page = watched.open("/m/shop")
        settled(page, "metric")
        described = client.describe("shop")
        facts = page.locator("#facts")
        expect(facts).to_contain_text(f"{described['sequence']:,}")
        expect(facts).to_contain_text(f"at pair {described['last_change']:,}")
        expect(page.locator("#features")).to_contain_text("size")
        expect(page.locator("#features")).to_contain_text("price")
        assert page.locator("#trust path").count() >= 2
        expect(page.locator("#judges")).to_contain_text("robot")


def test_neighbours_before_and_after_a_change(browser, server, client):
    with Watched(browser, server) as watched:
        page = watched.open("/m/shop")
        settled(page, "metric")
        page.get_by_role("combobox", name="Item").fill("item 7")
        page.get_by_role("combobox", name="Item").press("Tab")
        nearest = client.neighbours("shop", "item 7", k=8)
        # In this order, as soon as the page is done with the item that it showed first.
        expect(page.locator("#now li")).to_contain_text([f"{key} (" for key, _ in nearest])
        expect(page.locator("#before li")).to_have_count(8)
        assert page.locator("#before").inner_text() != page.locator("#now").inner_text()


def positions(page):
    js = "nodes => nodes.map(n => [n.querySelector('title').textContent, +n.cx.baseVal.value])"
    return dict(page.locator("#embedding circle").evaluate_all(js))


def test_judging_by_keyboard_moves_the_embedding_that_is_shown(browser, server, client):
    name = "judged"
    fill(client, name, n_pairs=0)
    with Watched(browser, server) as watching, Watched(browser, server) as judging:
        shown = watching.open(f"/m/{name}")
        expect(shown.locator("#embedding circle")).to_have_count(60)
        shown.wait_for_timeout(900)
        before = positions(shown)
        page = judging.open(f"/m/{name}/judge")
        page.get_by_label("Your name").fill("ann")
        page.get_by_label("Your name").press("Tab")
        expect(page.locator("#left")).to_contain_text("item")
        for i in range(20):
            page.keyboard.press("a" if i % 2 else "n")
            expect(page.get_by_text(f"{i + 1} answered")).to_be_visible()
            expect(page.locator("#alike")).to_be_enabled()
        page.keyboard.press("u")
        expect(page.get_by_text("21 answered")).to_be_visible()
        described = client.describe(name, min_sequence=20, timeout=30)
        assert described["pairs"] == 20
        expect(shown.locator(f'#embedding[data-version="{described["version"]}"]')).to_be_visible()
        shown.wait_for_timeout(900)
        moved = positions(shown)
        assert max(abs(moved[key] - before[key]) for key in before) > 1.0
        expect(shown.locator("#judges")).to_contain_text("ann")


def answers(client, name, sequence):
    client.describe(name, min_sequence=sequence, timeout=30)
    return json.loads(client.request("GET", f"/v1/metrics/{name}/judges"))["judges"]


def test_undo_takes_an_answer_back(browser, server, client):
    name = "undone"
    fill(client, name, n_pairs=0)
    with Watched(browser, server) as watched:
        page = watched.open(f"/m/{name}/judge")
        expect(page.locator("#left")).to_contain_text("item")
        first = page.locator(".sides").inner_text()
        page.keyboard.press("a")
        expect(page.get_by_text("1 answered")).to_be_visible()
        expect(page.locator("#undo")).to_be_enabled()
        page.keyboard.press("z")
        assert page.locator(".sides").inner_text() == first
        expect(page.locator("#undo")).to_be_disabled()
        page.keyboard.press("n")  # the same pair, judged anew
        expect(page.get_by_text("1 answered")).to_be_visible()
        expect(page.locator("#alike")).to_be_enabled()
        page.get_by_role("button", name="Unsure").click()
        expect(page.get_by_text("2 answered")).to_be_visible()
        found = answers(client, name, 1)
        assert found == [{"judge": "anonymous", "alike": 0, "not_alike": 1, "unsure": 0}]
        page.goto("about:blank")  # who leaves has answered
        found = answers(client, name, 2)
        assert found == [{"judge": "anonymous", "alike": 0, "not_alike": 1, "unsure": 1}]


def test_what_users_wrote_is_text(browser, server, client):
    client.create("text", 2)
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    client.put_items("text", [evil, "other"], np.eye(2), texts=[evil, "plain"])
    with Watched(browser, server) as watched:
        page = watched.open("/m/text/judge")
        expect(page.locator(".sides")).to_contain_text(evil)
        assert page.locator(".sides img").count() == 0
        page = watched.open("/m/text")
        expect(page.locator("#embedding circle")).to_have_count(2)
    client.delete("text")


def test_images_are_shown_from_where_items_say_and_from_nowhere_else(browser, server, client):
    client.create("pictures", 2)
    address = "http://pictures.example:81"
    client.put_items("pictures", ["one", "two"], np.eye(2), images=[f"{address}/dot.png"] * 2)
    with Watched(browser, server) as watched:
        watched.context.route(f"{address}/*", lambda route: route.fulfill(body=DOT))
        page = watched.open("/m/pictures/judge")
        expect(page.locator(".item img")).to_have_count(2)
        loaded = "image => image.decode().then(() => image.naturalWidth)"
        assert page.locator("#left img").evaluate(loaded) == 1
        watched.wrong = [each for each in watched.wrong if not each.startswith(f"asked {address}")]
    policies = [
        server.ask("GET", f"/m/{name}/judge").headers["content-security-policy"]
        for name in ("pictures", "shop")
    ]
    assert [address in policy for policy in policies] == [True, False]
    client.delete("pictures")


def test_token_is_asked_for(browser, spawner, tmp_path):
    token = add_token(tmp_path / "tokens.txt", "ann", "read,write,admin", "*")
    server = spawner.start(tmp_path / "data", tokens=tmp_path / "tokens.txt").wait()
    with Client(server.url, token) as client:
        fill(client)
    context = browser.new_context(base_url=server.url)
    page = context.new_page()
    page.goto("/m/shop")
    page.get_by_label("Token").fill(token)
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / "token.png")
    assert [
        e for e in Axe().run(page)["violations"] if e["impact"] in ("serious", "critical")
    ] == []
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="shop", exact=True).click()
    settled(page, "metric")
    page.get_by_role("link", name="Judge pairs").click()
    expect(page.locator("#left")).to_contain_text("item")
    page.keyboard.press("a")
    expect(page.get_by_text("1 answered")).to_be_visible()
    expect(page.locator("#alike")).to_be_enabled()
    page.keyboard.press("a")
    with Client(server.url, token) as client:
        assert client.describe("shop", min_sequence=3001, timeout=30)["version"] >= 3001
    context.close()
    server.end()
