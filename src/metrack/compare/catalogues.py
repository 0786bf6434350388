"""Two made-up shops that write of the same products in their own ways: records to try things on."""

from typing import Any, NamedTuple

import numpy as np

from metrack.checks import Ints, whole
from metrack.engine.numerics.kernels import Floats

Record = dict[str, Any]

MAKERS = {
    "Norvik": ("Fjell", "Skog"),
    "Castelo": ("Rio", "Praia", "Serra"),
    "Amberly": ("Heath", "Moor"),
    "Tanaka Optical": ("Hoshi", "Umi"),
    "Brandt & Sons": ("Kontor", "Atelier"),
    "Lumen": ("One", "Neo", "Go"),
}
THINGS = {
    "camera": ("digital camera", "compact cam", ("black", "silver"), 320.0),
    "printer": ("laser printer", "mono laser", ("white", "grey"), 180.0),
    "headphones": ("wireless headphones", "bluetooth headset", ("black", "white", "red"), 90.0),
    "monitor": ('27" monitor', "27in display", ("black", "silver"), 260.0),
}
SUFFIXES = ("", "", "", "s", "x", "pro")
MISSING = {"price": 0.15, "maker": 0.35}  # of the other shop's records


class Catalogues(NamedTuple):
    """What `catalogues` makes.

    Attributes
    ----------
    left, right : list of dict
        Records with a title, a maker and a price; some of right have no maker or price.
    same : array (n, 2)
        The row of left and the row of right of each product that both have.
    """

    left: list[Record]
    right: list[Record]
    same: Ints


class Product(NamedTuple):
    """What both shops mean."""

    maker: str
    line: str
    thing: str
    model: str
    colour: str
    price: float


def catalogues(n_records: int = 300, random_state: int = 0) -> Catalogues:
    """Make two lists of products, of which two thirds are in both.

    Products come in families that differ in a model number, a suffix or a colour, so that many
    pairs are similar and not the same.

    Parameters
    ----------
    n_records : int
        In each list.
    random_state : int

    Examples
    --------
    >>> from metrack.compare import catalogues
    >>> left, right, same = catalogues(300)
    >>> len(left), len(right), len(same)
    (300, 300, 200)
    >>> sorted(left[0])
    ['maker', 'price', 'title']
    """
    n = whole("n_records", n_records, least=3)
    rng = np.random.default_rng(random_state)
    both = 2 * n // 3
    products = _products(2 * n - both, rng)
    left = [_ours(product, rng) for product in products[:n]]
    places = rng.permutation(n)
    right: list[Record] = [{}] * n
    for place, product in zip(places, [*products[:both], *products[n:]], strict=True):
        right[place] = _theirs(product, rng)
    same = np.column_stack([np.arange(both), places[:both]])
    order = rng.permutation(n)  # of left, in which products in both came first
    back = np.argsort(order)
    same[:, 0] = back[same[:, 0]]
    return Catalogues([left[i] for i in order], right, same)


def _products(n: int, rng: np.random.Generator) -> list[Product]:
    """Different ones, in families."""
    found: dict[tuple[str, ...], Product] = {}
    while len(found) < n:
        maker = str(rng.choice(list(MAKERS)))
        line, thing = str(rng.choice(MAKERS[maker])), str(rng.choice(list(THINGS)))
        letters = "".join(rng.choice(list("ACDFKLMPRTXZ"), 2))
        number = int(rng.integers(1, 90)) * 10
        *_, colours, price = THINGS[thing]
        cost = float(price * rng.uniform(0.5, 3.0))
        for _ in range(int(rng.integers(1, 5))):  # a family
            suffix, colour = str(rng.choice(SUFFIXES)), str(rng.choice(colours))
            model = f"{letters}-{number + int(rng.integers(0, 3)) * 5}{suffix}"
            dearer = cost * rng.uniform(1.0, 1.3)
            product = Product(maker, line, thing, model, colour, dearer)
            found.setdefault((maker, line, thing, model, colour), product)
    order = rng.permutation(len(found))[:n]
    values = list(found.values())
    return [values[i] for i in order]


def _ours(product: Product, rng: np.random.Generator) -> Record:
    name = _name(product.thing, 0)
    title = f"{product.maker} {product.line} {product.model.upper()} {name} ({product.colour})"
    return {"title": title, "maker": product.maker, "price": f"{product.price:,.2f}"}


def _theirs(product: Product, rng: np.random.Generator) -> Record:
    """Other words, in another order, some of them missing or misspelt."""
    model = product.model.lower().replace("-", "" if rng.random() < 0.5 else " ")
    parts: list[str] = [product.line.lower(), model, _name(product.thing, int(rng.random() < 0.7))]
    if rng.random() < 0.6:
        parts.insert(0, product.maker.split()[0].lower())
    if rng.random() < 0.7:
        parts.append(product.colour)
    if rng.random() < 0.3:
        parts.append(str(rng.choice(["new", "sale", "2 year warranty", "incl. case"])))
    if rng.random() < 0.2:
        parts[0] = _misspelt(parts[0], rng)
    asked: Floats = product.price * np.exp(rng.normal(0.0, 0.06))
    record: Record = {
        "title": " ".join(parts),
        "maker": product.maker.upper(),
        "price": round(float(asked), 2),
    }
    for field, share in MISSING.items():
        if rng.random() < share:
            record[field] = None
    return record


def _name(thing: str, which: int) -> str:
    """One of the two that a thing has."""
    return str(THINGS[thing][which])


def _misspelt(word: str, rng: np.random.Generator) -> str:
    """Two neighbouring letters exchanged."""
    i = int(rng.integers(0, max(len(word) - 1, 1)))
    return word[:i] + word[i : i + 2][::-1] + word[i + 2 :]
