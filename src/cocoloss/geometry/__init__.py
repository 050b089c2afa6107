"""Where the classes should sit: target similarities, class vectors, and what R^q has room for.

Neither data nor networks are known here.
"""

from cocoloss.geometry.etf import etf_distance
from cocoloss.geometry.frames import packing_frame, simplex_frame
from cocoloss.geometry.reachability import nearest_reachable, validate_similarity
from cocoloss.geometry.similarity import SIMILARITIES, similarity

__all__ = [
    "SIMILARITIES",
    "etf_distance",
    "nearest_reachable",
    "packing_frame",
    "similarity",
    "simplex_frame",
    "validate_similarity",
]
