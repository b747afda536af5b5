"""Exact Bingham quantities by one contour integral, independent of any sampler.

With λ_i the eigenvalues' distances from the largest, the uniform mean of e^{−uᵀΛu} over the sphere is Γ(d/2)
times the inverse Laplace transform of Π(s + λ_i)^{−1/2} at 1 (write the sphere as a Gaussian integral
conditioned on the squared norm). The contour is the parabola s = c(1 + iv)², which stays off the cut (−∞, 0],
and the trapezoid rule on it converges geometrically.
"""

import math

import mpmath
import numpy as np
from scipy.special import gammaln

from dpmoments.papers.sphere import envelope_parameter


def second_moments(eigenvalues, digits=25):
    """E[u_i²] for density ∝ exp(Σ eigenvalues_i u_i²): −∂ log(normalizing integral)/∂λ_i, by mpmath."""
    with mpmath.workdps(digits):
        gaps = [mpmath.mpf(float(max(eigenvalues) - value)) for value in eigenvalues]
        crossing = mpmath.mpf(len(gaps)) / 4 + mpmath.mpf(1) / 4
        step, reach = mpmath.mpf(1) / 40, int(40 * mpmath.sqrt(1 + digits * mpmath.log(10) / crossing))
        total = mpmath.mpc(0)
        moments = [mpmath.mpc(0)] * len(gaps)
        for index in range(-reach, reach + 1):
            root = 1 + 1j * step * index
            s = crossing * root**2
            term = mpmath.exp(s) * root
            for gap in gaps:
                term /= mpmath.sqrt(s + gap)
            total += term
            moments = [moment + term / (2 * (s + gap)) for moment, gap in zip(moments, gaps, strict=True)]
        return np.array([float((moment / total).real) for moment in moments])


def mean_proposals(eigenvalues):
    """The exact mean number of proposals a draw at the best envelope parameter b.

    N = (d/2)^{d/2} e^{−d/2} / (Γ(d/2) f), f the density at its mean, 1, of Σ p_i g_i², p_i = 1/(b + 2λ_i).
    """
    values = np.asarray(eigenvalues, dtype=float)
    d = values.size
    gaps = values.max() - values
    saddle = envelope_parameter(gaps) / 2.0
    step = 0.1 / math.sqrt(d)  # the peak at the saddle point is no narrower than about 1/√d
    v = np.arange(-math.sqrt(40.0 / saddle), math.sqrt(40.0 / saddle), step)  # where e^{−saddle·v²} is above 1e-17
    root = 1.0 + 1j * v
    s = saddle * root**2
    log_terms = s - saddle  # of the integrand, relative to the saddle point
    for gap, count in zip(*np.unique(gaps, return_counts=True), strict=True):
        log_terms -= 0.5 * count * np.log((s + gap) / (saddle + gap))
    density = float((np.exp(log_terms) * 2.0 * saddle * root).real.sum() * step / (2.0 * math.pi))
    return math.exp(0.5 * d * (math.log(0.5 * d) - 1.0) - float(gammaln(0.5 * d))) / density
