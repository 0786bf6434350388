"""The pages in a real browser: with items of all kinds, in light and dark, wide and small."""

import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from axe_core_python.sync_playwright import Axe
from playwright.sync_api import expect

from metrack import Client
from metrack.serve.tokens import add_token
from tests.browser.conftest import Watched, fill

SHOTS = os.environ.get("METRACK_SHOTS")  # a folder, to look at
KINDS = ("digits", "tickets", "shop")
PAGES = {
    "all": "/",
    "empty": "/m/empty",
    **{f"metric-{name}": f"/m/{name}" for name in KINDS},
    **{f"judge-{name}": f"/m/{name}/judge" for name in KINDS},
    "again": "/m/shop/judge#again",
    "settle": "/m/digits/judge#settle",
}
WIDTHS = {"wide": {"width": 1280, "height": 900}, "small": {"width": 400, "height": 800}}
LOOKS = {
    f"{size}-{colours}": {"color_scheme": colours, "viewport": viewport}
    for size, viewport in WIDTHS.items()
    for colours in ("light", "dark")
}
SMALL = LOOKS["small-light"]


def settled(page, name):
    """Until all is drawn."""
    if name == "all":
        expect(page.locator("#metrics svg").first).to_be_visible()
    elif name.startswith("metric"):
        expect(page.locator("#course svg")).to_be_visible()
        expect(page.locator("#embedding circle")).to_have_count(500)
        expect(page.locator("#now li")).to_have_count(8)
        expect(page.locator("#judges tr").first).to_be_visible()
        page.wait_for_timeout(900)
    elif name == "empty":
        expect(page.get_by_text("There are no items.")).to_be_visible()
    elif name.startswith("judge"):
        expect(page.locator("#pair .panel").first).to_be_visible()
        expect(page.locator("#how-far")).to_contain_text("answers so far")
    else:
        expect(page.locator("#answers article").first).to_be_visible()


def grave(page):
    """What axe finds serious."""
    found = Axe().run(page)["violations"]
    return [each for each in found if each["impact"] in ("serious", "critical")]


def empty_panels(page):
    """Of those that are seen."""
    has_nothing = "n.checkVisibility() && !n.innerText.trim() && !n.querySelector('svg, img')"
    js = f"nodes => nodes.filter(n => {has_nothing}).map(n => n.outerHTML)"
    return page.locator(".panel, .item").evaluate_all(js)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_pages_show_without_faults(browser, server, name, look):
    with Watched(browser, server, **LOOKS[look]) as watched:
        watched.page.add_init_script("localStorage.setItem('judge', 'ann')")
        page = watched.open(PAGES[name])
        settled(page, name)
        if SHOTS:
            page.screenshot(path=Path(SHOTS) / f"{name}-{look}.png", full_page=True)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= LOOKS[look]["viewport"]["width"], "it scrolls sideways"
        wide = "nodes => nodes.filter(n => n.scrollWidth > n.clientWidth + 1).map(n => n.outerHTML)"
        assert page.locator("main, .panel").evaluate_all(wide) == []
        assert empty_panels(page) == []
        broken = "nodes => nodes.filter(n => n.complete && !n.naturalWidth).map(n => n.src)"
        assert page.locator("img").evaluate_all(broken) == []
        assert grave(page) == [], json.dumps(grave(page), indent=1)


@pytest.mark.parametrize("name", ["all", "metric-shop", "empty", "judge-tickets"])
def test_a_page_load_settles(server, name, tmp_path):
    """A virtual clock stands still while a request is open: with one that never ends, for ever."""
    chromium = os.environ["METRACK_BROWSER"], "--headless=new", "--no-sandbox", "--disable-gpu"
    options = "--virtual-time-budget=3000", f"--user-data-dir={tmp_path}", "--dump-dom"
    url = server.url + PAGES[name]
    found = subprocess.run([*chromium, *options, url], capture_output=True, text=True, timeout=60)
    shown = {"all": ">shop</a>", "metric-shop": "<circle", "empty": "no items"}
    assert shown.get(name, 'class="text"') in found.stdout


def test_home_says_what_it_is_and_how_each_metric_does(browser, server):
    with Watched(browser, server) as watched:
        page = watched.open("/")
        settled(page, "all")
        lead = page.locator(".lead").inner_text()
        assert len(re.findall(r"[.!?](?:\s|$)", lead)) == 2
        card = page.locator("article").filter(has=page.get_by_role("link", name="shop", exact=True))
        for told in ("right", "AUC", "today", "last change", "of the latest judgements"):
            expect(card).to_contain_text(told)
        assert card.locator("svg path").count() == 2  # its loss, and plain distance's
        assert card.locator(".health.good, .health.watch").count() == 1


def test_a_metric_is_found_among_many(browser, server, client):
    names = [f"many-{i}" for i in range(10)]
    for name in names:
        client.create(name, 2)
    with Watched(browser, server) as watched:
        page = watched.open("/")
        page.get_by_label("Find").fill("ny-7")
        expect(page.locator("#metrics article")).to_have_count(1)
        expect(page.get_by_role("link", name="many-7", exact=True)).to_be_visible()
    for name in names:
        client.delete(name)


def test_items_are_shown_as_soon_as_there_are_some(browser, server, client):
    client.create("late", 64)
    with Watched(browser, server) as watched:
        page = watched.open("/m/late")
        expect(page.get_by_text("There are no items.")).to_be_visible()
        points = np.random.default_rng(0).normal(size=(500, 64))
        client.put_items("late", [str(i) for i in range(500)], points)
        expect(page.locator("#embedding circle")).to_have_count(500)
    client.delete("late")


def path_of(page):
    return page.locator("#course path.one").get_attribute("d")


def test_measures_by_judgement_and_by_time_of_day(browser, server):
    with Watched(browser, server) as watched:
        page = watched.open("/m/shop")
        settled(page, "metric-shop")
        accuracy = path_of(page)
        assert page.locator("#course line.mark").count() >= 1  # where a change was noticed
        page.get_by_label("Show").select_option("loss")
        expect(page.locator("#course path.two")).to_have_count(1)  # plain distance's
        assert path_of(page) != accuracy
        page.get_by_label("Show").select_option("auc")
        whole = path_of(page)
        page.locator("#range").select_option("1000")
        assert len(path_of(page)) < len(whole)
        page.locator("#axis").select_option("time")
        expect(page.locator("#range")).to_contain_text("the last hour")
        expect(page.locator("#course svg")).to_contain_text(re.compile(r"\d\d:\d\d"))


def test_changes_and_trust_are_told_in_words(browser, server):
    with Watched(browser, server) as watched:
        page = watched.open("/m/shop")
        settled(page, "metric-shop")
        change = page.locator("#changes li").first
        expect(change).to_contain_text(
            re.compile(
                r"^At \d\d:\d\d what counts as alike changed: .*(rating|brand).* more, .*less\.$"
            )
        )
        expect(page.locator("#back")).to_contain_text(re.compile(r"Mostly at .*judgements?"))
        shares = page.locator("#decides strong").all_inner_texts()
        assert 95 <= sum(int(each.split()[0]) for each in shares) <= 101
        expect(page.locator("#trust svg")).to_have_count(0)
        page.get_by_text("Over time, learner by learner").click()
        expect(page.locator("#trust path").first).to_be_visible()  # details on demand


def positions(page):
    js = "nodes => nodes.map(n => [n.querySelector('title').textContent, +n.cx.baseVal.value])"
    return dict(page.locator("#embedding circle").evaluate_all(js))


def furthest(one, other):
    return max(abs(one[key] - other[key]) for key in one)


def test_items_move_through_a_change(browser, server):
    with Watched(browser, server) as watched:
        page = watched.open("/m/shop")
        settled(page, "metric-shop")
        now, slider = positions(page), page.get_by_label("From before the last change to now")
        slider.fill("0")
        page.wait_for_timeout(100)
        before = positions(page)
        assert furthest(now, before) > 20
        slider.fill("50")
        page.wait_for_timeout(100)
        middle = {key: (now[key] + before[key]) / 2 for key in now}
        assert furthest(positions(page), middle) < 0.1
        page.goto("/m/digits")  # no change was noticed
        settled(page, "metric-digits")
        expect(page.get_by_label("From before the last change to now")).to_be_hidden()
        expect(page.locator("#before")).to_be_hidden()


def test_neighbours_before_and_after_a_change(browser, server, client):
    with Watched(browser, server) as watched:
        page = watched.open("/m/shop")
        settled(page, "metric-shop")
        page.get_by_role("combobox", name="Item").fill("A-1007")
        page.get_by_role("combobox", name="Item").press("Tab")
        nearest = client.neighbours("shop", "A-1007", k=8)
        # In this order, as soon as the page is done with the item that it showed first.
        expect(page.locator("#now li")).to_contain_text([key for key, _ in nearest])
        expect(page.locator("#before li")).to_have_count(8)
        assert page.locator("#before").inner_text() != page.locator("#now").inner_text()


def test_what_goes_out_comes_in_again(browser, server, client, tmp_path):
    with Watched(browser, server) as watched:
        page, files = watched.open("/m/shop"), {}
        for name in ("State (zip)", "Judgements (Parquet)", "Items (Parquet)"):
            with page.expect_download() as found:
                page.get_by_role("link", name=name).click()
            files[name] = tmp_path / found.value.suggested_filename
            found.value.save_as(files[name])
        page.goto("/")
        page.get_by_text("Or bring one that was exported").click()
        page.locator("#import-name").fill("copy")
        page.locator("#import-file").set_input_files(files["State (zip)"])
        page.get_by_role("button", name="Import").click()
        page.wait_for_url("**/m/copy")
        page.get_by_label("Bring items").set_input_files(files["Items (Parquet)"])
        expect(page.locator("#files-said")).to_have_text("There are 500 items now.")
        client.create("again", 8)
        page.goto("/m/again")
        page.get_by_label("Bring judgements").set_input_files(files["Judgements (Parquet)"])
        n = client.describe("shop")["sequence"]
        expect(page.locator("#files-said")).to_contain_text(f"{n:,} judgements came")
        page.get_by_label("Bring items").set_input_files(files["State (zip)"])
        expect(page.locator("#files-problem")).to_be_visible()
    pair = [("A-1000", "A-1001")]
    assert client.distance("copy", pair) == client.distance("shop", pair)
    client.describe("again", min_sequence=n, timeout=60)
    client.delete("copy")
    client.delete("again")


def test_what_users_wrote_is_text(browser, server, client):
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    told = {"question": evil, "instructions": evil, "features": [evil, "b"]}
    client._json("PUT", "/v1/metrics/text", {"n_features": 2, **told})
    given = {"texts": [evil, "plain"], "records": [{evil: evil}, {"b": 1}]}
    client.put_items("text", [evil, "other"], np.eye(2), **given)
    client.feedback("text", [(evil, "other")], [1], judge=evil)
    with Watched(browser, server) as watched:
        page = watched.open("/m/text/judge")
        expect(page.locator("#question")).to_contain_text(evil)
        assert page.locator("img").count() == 0
        page = watched.open("/m/text")
        expect(page.locator("#embedding circle")).to_have_count(2)
        expect(page.locator("#judges")).to_contain_text(evil)
        assert page.locator("img").count() == 0
    client.delete("text")


def test_images_are_shown_from_where_items_say_and_from_nowhere_else(browser, server):
    with Watched(browser, server) as watched:
        page = watched.open("/m/digits/judge")
        expect(page.locator(".item img")).to_have_count(2)
        loaded = "image => image.decode().then(() => image.naturalWidth)"
        assert page.locator(".item img").first.evaluate(loaded) == 128
    policies = [
        server.ask("GET", f"/m/{name}/judge").headers["content-security-policy"]
        for name in ("digits", "shop")
    ]
    assert ["digits.example" in policy for policy in policies] == [True, False]


def test_token_is_asked_for(browser, spawner, tmp_path):
    token = add_token(tmp_path / "tokens.txt", "ann", "read,write,admin", "*")
    server = spawner.start(tmp_path / "data", tokens=tmp_path / "tokens.txt").wait()
    with Client(server.url, token) as client:
        fill(client, "shop", 300)
    context = browser.new_context(base_url=server.url)
    page = context.new_page()
    page.goto("/m/shop")
    page.get_by_label("Token").fill(token)
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / "token.png")
    assert grave(page) == []
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/m/shop")  # what was asked for
    expect(page.locator("#embedding circle")).to_have_count(60)
    page.get_by_role("link", name="Judge pairs").click()
    expect(page.locator("#pair")).to_contain_text("item")
    page.keyboard.press("a")
    expect(page.get_by_text("1 answered")).to_be_visible()
    expect(page.locator("#alike")).to_be_enabled()
    page.keyboard.press("a")
    with Client(server.url, token) as client:
        assert client.describe("shop", min_sequence=301, timeout=30)["version"] >= 301
    context.close()
    server.end()
