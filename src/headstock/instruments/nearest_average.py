"""How far a point is from every average of some values, and from every positive combination of them.

Knows nothing of models. Both are least squares with coefficients ≥ 0 (Lawson & Hanson, 1974), solved exactly but for
rounding.
"""

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
_ROUNDS_A_VALUE = 30


def distance_to_averages(point_d: Numbers, values_nd: Numbers) -> float:
    """Give the Euclidean distance of a point to the convex hull of values: 0 for Σ w v with w ≥ 0 and Σ w = 1.

    For w = u / Σu, the least of |Σ u_k (v_k − z)|² + (Σu − 1)² over u ≥ 0 is |Σ w (v − z)|² / (1 + |Σ w (v − z)|²),
    which grows with the distance: so the u that gives it gives the nearest average.
    """
    apart_nd = values_nd - point_d
    scale = float(np.linalg.norm(apart_nd, axis=1).max())
    if not scale:
        return 0.0
    apart_dn = apart_nd.T / scale
    u_n = _not_negative(np.vstack([apart_dn, np.ones((1, len(values_nd)))]), np.append(np.zeros(len(apart_dn)), 1.0))
    return scale * float(np.linalg.norm(apart_dn @ u_n) / u_n.sum())


def part_beyond_combinations(point_d: Numbers, values_nd: Numbers) -> float:
    """Give what is left of a point less the nearest Σ u v with u ≥ 0 of any sum, in lengths of the point, 0 to 1."""
    length = float(np.linalg.norm(point_d))
    scale = float(np.abs(values_nd).max(initial=0.0))
    if not length:
        return 0.0
    if not scale:
        return 1.0
    values_dn, unit_d = values_nd.T / scale, point_d / length
    return float(np.linalg.norm(values_dn @ _not_negative(values_dn, unit_d) - unit_d))


def _not_negative(columns: Numbers, wanted: Numbers) -> Numbers:
    """Give u ≥ 0 with the least |columns · u − wanted|."""
    from scipy.optimize import nnls

    solution: Numbers = nnls(columns, wanted, maxiter=_ROUNDS_A_VALUE * columns.shape[1])[0]
    return solution
