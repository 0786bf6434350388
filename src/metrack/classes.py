"""Points in the order of their classes, from which pairs and triplets are drawn."""

import numpy as np

from metrack.checks import Ints


class ClassOrder:
    """Points in the order of their classes: a class is then a range of places.

    The points outside a class are a range too, once the order is closed to a circle. So pairs can
    be numbered from 0, and drawn by number: no list of them is made.

    Parameters
    ----------
    codes : array (n_points,)
        Class of each point, 0, 1, ...

    Attributes
    ----------
    order : array (n_points,)
        The point at each place.
    size, start, end : array (n_points,)
        Of the class at each place: how many points, its first place, and the first after it.
    counts : array
        How many points each class has.
    """

    def __init__(self, codes: Ints) -> None:
        self.n_points = len(codes)
        self.counts: Ints = np.bincount(codes)
        self.order: Ints = np.argsort(codes, kind="stable")
        place_class = codes[self.order]
        self.size: Ints = self.counts[place_class]
        self.end: Ints = np.cumsum(self.counts)[place_class]
        self.start: Ints = self.end - self.size
