"""How much each expert is trusted: a file for each combiner, known by the names in `COMBINERS`."""

from metrack.engine.ensemble.combiners.adanormalhedge import ADANORMALHEDGE
from metrack.engine.ensemble.combiners.adaptive_share import ADAPTIVE_SHARE
from metrack.engine.ensemble.combiners.ader import ADER
from metrack.engine.ensemble.combiners.alone import ALONE
from metrack.engine.ensemble.combiners.cbce import CBCE
from metrack.engine.ensemble.combiners.fixed_share import FIXED_SHARE
from metrack.engine.ensemble.combiners.protocol import COMBINERS, Combiner, register
from metrack.engine.ensemble.combiners.sadl import SADL

__all__ = ["ALONE", "COMBINERS", "Combiner", "register"]

register("sadl", SADL)
register("cbce", CBCE)
register("adanormalhedge", ADANORMALHEDGE)
register("fixed_share", FIXED_SHARE)
register("adaptive_share", ADAPTIVE_SHARE)
register("ader", ADER)
