"""The door: what users give, checked once.

Every error names the offending row and says what to do. Nothing here changes a learner.
"""

from metrack.estimators.inputs.arrays import LARGEST as LARGEST
from metrack.estimators.inputs.arrays import check_one_each as check_one_each
from metrack.estimators.inputs.labels import LabelsLike as LabelsLike
from metrack.estimators.inputs.labels import check_class_labels as check_class_labels
from metrack.estimators.inputs.labels import check_judgements as check_judgements
from metrack.estimators.inputs.labels import check_labelled as check_labelled
from metrack.estimators.inputs.labels import check_labels as check_labels
from metrack.estimators.inputs.names import hand_names as hand_names
from metrack.estimators.inputs.names import restore_names as restore_names
from metrack.estimators.inputs.names import take_names as take_names
from metrack.estimators.inputs.names import take_names_of_pairs as take_names_of_pairs
from metrack.estimators.inputs.points import Lookup as Lookup
from metrack.estimators.inputs.points import Points as Points
from metrack.estimators.inputs.points import PointsLike as PointsLike
from metrack.estimators.inputs.points import Preprocessor as Preprocessor
from metrack.estimators.inputs.points import are_ids as are_ids
from metrack.estimators.inputs.points import check_points as check_points
from metrack.estimators.inputs.points import check_preprocessor as check_preprocessor
from metrack.estimators.inputs.points import float_type as float_type
from metrack.estimators.inputs.points import points_for as points_for
from metrack.estimators.inputs.points import points_of as points_of
from metrack.estimators.inputs.tuples import PairBatch as PairBatch
from metrack.estimators.inputs.tuples import TripletBatch as TripletBatch
from metrack.estimators.inputs.tuples import TuplesLike as TuplesLike
