"""A metric per key on Spark: many trackers, fed by one stream or table of judged pairs.

Spark keeps the state of each tracker, deals keys out to its workers and starts again where it was
stopped; what is learned is what a tracker of its own would have learned for each key.

Needs the extra ``spark``, and Java: ``pip install "metrack[spark]"``.
"""

try:
    import pandas as pandas
    import pyarrow as pyarrow
    import pyspark as pyspark
except ImportError as error:
    raise ImportError(
        "metrack.spark needs PySpark with pandas and PyArrow, which are not all installed: "
        'pip install "metrack[spark]"'
    ) from error

from metrack.spark.readers import bad_rows, distance, latest, transform
from metrack.spark.trackers import track

__all__ = ["bad_rows", "distance", "latest", "track", "transform"]
