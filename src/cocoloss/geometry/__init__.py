"""Where the classes should sit: target similarities, class vectors, and what R^q has room for.

Neither data nor networks are known here.
"""

from cocoloss.geometry.frames import etf_distance, packing_frame, simplex_frame
from cocoloss.geometry.similarity import (
    SIMILARITIES,
    nearest_reachable,
    similarity,
    target_points,
    validate_similarity,
)

__all__ = [
    "SIMILARITIES",
    "etf_distance",
    "nearest_reachable",
    "packing_frame",
    "similarity",
    "simplex_frame",
    "target_points",
    "validate_similarity",
]
