"""Where pairs come from: streams of judgements that drift and say how.

A stream gives pairs and judgements, one by one or in bulk, at any step and in any order, and
carries the description of its own drift (``marks``, ``switches``).
"""

from metrack.streams.base import PairStream
from metrack.streams.labelled import LabelledStream
from metrack.streams.reviews import Corpus, load_reviews
from metrack.streams.schedule import Segment, abrupt, gradual, paper_schedule, recurring
from metrack.streams.synthetic import DriftingClusters

__all__ = [
    "Corpus",
    "DriftingClusters",
    "LabelledStream",
    "PairStream",
    "Segment",
    "abrupt",
    "gradual",
    "load_reviews",
    "paper_schedule",
    "recurring",
]
