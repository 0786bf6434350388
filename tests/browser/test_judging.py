"""People who judge, in a real browser: from a table to a metric, by keyboard and by touch."""

import csv
import json

import numpy as np
from playwright.sync_api import expect

from tests.browser.conftest import Watched, fill
from tests.browser.test_pages import SMALL, furthest, positions, settled

COLUMNS = ["id", "name", "brand", "price", "size"]
BRANDS = ["Alba", "Borel", "Cirrus"]


def table(path, n_items=40):
    """A file as somebody has it; what is alike is the price."""
    rng = np.random.default_rng(5)
    rows = [
        [f"A-{i}", f'shoe "{i}", new', BRANDS[i % 3], round(rng.uniform(20, 90), 2), 34 + i % 12]
        for i in range(n_items)
    ]
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    return {str(row[0]): row for row in rows}


def shown_pair(page):
    """Ids of the pair that is shown as a table."""
    return page.locator("#pair th[scope=col]").all_inner_texts()


def test_who_knows_nothing_makes_a_metric_judges_and_reads_what_counts(
    browser, server, client, tmp_path
):
    """By what the pages say alone: a table, twenty answers, what counts now."""
    items = table(tmp_path / "My shoes.csv")
    with Watched(browser, server, **SMALL) as watched:
        page = watched.open("/")
        page.get_by_role("link", name="New metric").click()
        page.get_by_label("Items, as a table").set_input_files(tmp_path / "My shoes.csv")
        expect(page.locator("#new-said")).to_have_text(
            "40 items with 2 features; judges see their records."
        )
        expect(page.get_by_label("Name").first).to_have_value("My-shoes")
        page.get_by_label("What judges are asked").fill("Do these cost about the same?")
        page.get_by_text("More", exact=True).click()
        page.get_by_label("Instructions for judges").fill("Ten more or less are the same.")
        page.get_by_role("button", name="Make it").click()
        expect(page.get_by_role("heading", name="My-shoes")).to_be_visible()
        expect(page.locator("#health")).to_contain_text("judge some pairs")
        page.get_by_role("link", name="Judge pairs").click()
        expect(page.get_by_role("heading")).to_have_text("Do these cost about the same?")
        expect(page.get_by_text("Ten more or less are the same.")).to_be_visible()
        page.get_by_label("Your name").fill("ann")
        page.get_by_label("Your name").press("Tab")
        expect(page.locator("#how-far")).to_contain_text("20 more")
        for i in range(20):
            expect(page.get_by_role("button", name="Alike", exact=True)).to_be_enabled()
            a, b = shown_pair(page)
            near = abs(items[a][3] - items[b][3]) < 10
            page.get_by_role("button", name="Alike" if near else "Not alike", exact=True).click()
            expect(page.locator("#count")).to_contain_text(f"{i + 1} answered")
        page.get_by_role("link", name="Back to the metric").click()
        expect(page.locator("#facts")).to_contain_text("20")
        expect(page.locator("#health")).to_contain_text("20 judged so far")
        expect(page.locator("#features-note")).to_contain_text("Counting most now: price")
        expect(page.locator("#judges")).to_contain_text("ann")
        expect(page.locator("#progress-said")).to_contain_text("20 answers so far.")
        expect(page.locator("#now li")).to_have_count(8)
    client.delete("My-shoes")


def test_a_table_that_cannot_be_used_is_told_at_once(browser, server, tmp_path):
    (tmp_path / "words.csv").write_text("name,text\na,b\nc,d\n", encoding="utf-8")
    (tmp_path / "uneven.csv").write_text("a,b\n1,2\n3\n", encoding="utf-8")
    with Watched(browser, server) as watched:
        page = watched.open("/")
        for name, words in (("words.csv", "features first"), ("uneven.csv", "Row 3 has 1 cells")):
            page.get_by_label("Items, as a table").set_input_files(tmp_path / name)
            expect(page.locator("#new-problem")).to_contain_text(words)
        page.get_by_label("Items, as a table").set_input_files([])
        page.get_by_label("Name").first.fill("shop")
        page.get_by_label("Or the number of features").fill("3")
        page.get_by_role("button", name="Make it").click()
        expect(page.locator("#new-problem")).to_contain_text("There is a metric shop already")


def test_judging_by_keyboard_moves_the_embedding_that_is_shown(browser, server, client):
    name = "judged"
    fill(client, name)
    with Watched(browser, server) as watching, Watched(browser, server) as judging:
        shown = watching.open(f"/m/{name}")
        expect(shown.locator("#embedding circle")).to_have_count(60)
        shown.wait_for_timeout(900)
        before = positions(shown)
        page = judging.open(f"/m/{name}/judge")
        page.get_by_label("Your name").fill("ann")
        page.get_by_label("Your name").press("Tab")
        expect(page.locator("#pair")).to_contain_text("item")
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
        assert furthest(positions(shown), before) > 1.0
        expect(shown.locator("#judges")).to_contain_text("ann")
    client.delete(name)


def answers(client, name, sequence):
    client.describe(name, min_sequence=sequence, timeout=30)
    return json.loads(client.request("GET", f"/v1/metrics/{name}/judges"))["judges"]


def test_undo_takes_an_answer_back(browser, server, client):
    name = "undone"
    fill(client, name)
    with Watched(browser, server) as watched:
        page = watched.open(f"/m/{name}/judge")
        expect(page.locator("#pair")).to_contain_text("item")
        first = page.locator("#pair").inner_text()
        page.keyboard.press("a")
        expect(page.get_by_text("1 answered")).to_be_visible()
        expect(page.locator("#undo")).to_be_enabled()
        page.keyboard.press("z")
        assert page.locator("#pair").inner_text() == first
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
    client.delete(name)


def test_touch_at_400_pixels(browser, server, client):
    """Buttons for fingers, all in sight, and no keys that a phone has not."""
    name = "touched"
    fill(client, name)
    with Watched(browser, server, has_touch=True, is_mobile=True, **SMALL) as watched:
        page = watched.open(f"/m/{name}/judge")
        expect(page.locator("#pair")).to_contain_text("item")
        for key in ("alike", "other", "unsure", "undo"):
            box = page.locator(f"#{key}").bounding_box()
            assert min(box["width"], box["height"]) >= 44
            assert box["y"] + box["height"] <= 800
        expect(page.locator("#alike kbd")).to_be_hidden()
        page.locator("#alike").tap()
        expect(page.get_by_text("1 answered")).to_be_visible()
    client.delete(name)


def test_pairs_are_shown_as_what_they_are(browser, server):
    with Watched(browser, server) as watched:
        page = watched.open("/m/tickets/judge")
        settled(page, "judge-tickets")
        sides = page.locator(".item .text")
        expect(sides).to_have_count(2)
        marked = [set(side.locator("mark").all_inner_texts()) for side in sides.all()]
        whole = [side.inner_text() for side in sides.all()]
        assert whole[0] != whole[1]
        assert any(marked)
        assert all(
            word in text for text, words in zip(whole, marked, strict=True) for word in words
        )
        page.goto("/m/shop/judge")
        settled(page, "judge-shop")
        names = page.locator("#pair th[scope=row]").all_inner_texts()
        assert names[:3] == ["name", "brand", "price"]
        for row in page.locator("#pair tbody tr").all():
            left, right = row.locator("td").all_inner_texts()
            assert row.locator("mark").count() == (0 if left == right else 2)


def test_answers_are_looked_at_again_and_corrected(browser, server, client):
    name = "corrected"
    fill(client, name)
    client.feedback(name, [("item 1", "item 2"), ("item 3", "item 4")], [1, -1], judge="ann")
    with Watched(browser, server) as watched:
        watched.page.add_init_script("localStorage.setItem('judge', 'ann')")
        page = watched.open(f"/m/{name}/judge")
        page.get_by_role("link", name="Look again").click()
        cards = page.locator("#answers article")
        expect(cards).to_have_count(2)
        expect(cards.first).to_contain_text("You said not alike")
        cards.first.get_by_role("button", name="alike: item 3 and item 4", exact=True).click()
        expect(cards.first).to_contain_text("Now alike")
    found = answers(client, name, 3)
    assert found == [{"judge": "ann", "alike": 2, "not_alike": 0, "unsure": 0}]
    assert client.describe(name)["pairs"] == 3  # the correction was learned
    client.delete(name)


def test_disagreements_are_settled(browser, server, client):
    name = "settled"
    fill(client, name)
    pairs = [(f"item {i}", f"item {i + 1}") for i in range(0, 12, 2)]
    client.feedback(name, pairs, [1, 1, 1, -1, -1, -1], judge="ann")
    client.feedback(name, pairs, [1, 1, -1, -1, -1, -1], judge="bob")
    with Watched(browser, server) as watched:
        watched.page.add_init_script("localStorage.setItem('judge', 'cy')")
        page = watched.open(f"/m/{name}")
        expect(page.locator("#agreement")).to_contain_text(
            "ann and bob agree on 83 % of 6 pairs that both answered; Cohen's kappa 0.67."
        )
        page.get_by_role("link", name="Settle 1 disagreement").click()
        card = page.locator("#answers article")
        expect(card).to_have_count(1)
        expect(card).to_contain_text("ann: alike")
        expect(card).to_contain_text("bob: not alike")
        card.get_by_role("button", name="not alike", exact=False).click()
        expect(card).to_contain_text("Settled: not alike.")
        page.reload()
        expect(page.locator("#review-note")).to_contain_text("there is nothing to settle")
    client.delete(name)


def test_it_says_when_to_stop(browser, server, client):
    """Where two features tell all, and everything about them has been said."""
    name = "enough"
    rng = np.random.default_rng(0)
    points = np.repeat([[0.0, 0.0], [10.0, 0.0]], 20, axis=0) + 0.01 * rng.normal(size=(40, 2))
    client.create(name, 2)
    client.put_items(name, [f"item {i}" for i in range(40)], points)
    rows = rng.permutation(np.stack(np.triu_indices(40, 1), axis=1))[:200]
    y = np.where((rows < 20).sum(axis=1) != 1, 1, -1)
    client.feedback(name, [(f"item {a}", f"item {b}") for a, b in rows], y, judge="ann")
    with Watched(browser, server) as watched:
        page = watched.open(f"/m/{name}/judge")
        expect(page.locator("#how-far")).to_contain_text("You may stop")
        assert page.locator("#progress").evaluate("bar => bar.value") == 1
    client.delete(name)
