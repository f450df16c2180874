"""Standard errors of a fit, the noise model behind them, confidence intervals and the bootstrap.

===================== ==============================================================================
`ConfidenceIntervals` Bounds of factors and weights, from `codiag.Factorization.conf_int`.
`Bootstrap`           Replicates of a fit, from `codiag.Factorization.bootstrap`.
===================== ==============================================================================

Examples
--------
>>> import codiag
>>> tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, rng=0).tensor
>>> type(codiag.factorize(tensor, 2, rng=0).conf_int()).__name__
'ConfidenceIntervals'
"""

from codiag._checks import public_names
from codiag.inference._bootstrap import Bootstrap, bootstrap, part_of
from codiag.inference._intervals import ConfidenceIntervals, intervals
from codiag.inference._noise_model import NoiseModel, along, estimate_noise_model, lags_of, weights_of
from codiag.inference._sandwich import ModeCovariance, RangeLinearization
from codiag.inference._sensitivity import (
    Sensitivity,
    Unknowns,
    noise_level,
    restricted_sensitivity,
    sensitivity,
    sensitivity_of,
)
from codiag.inference._separation import SEPARATED
from codiag.inference._simulation import simulated_errors
from codiag.inference._standard_errors import (
    UnitErrors,
    described_noise_model,
    gain_covariances,
    noise_errors,
    noise_in_words,
    noise_model_of,
    residual_of,
    shared_gain,
)

__all__ = ["Bootstrap", "ConfidenceIntervals"]

__dir__ = public_names(__all__)
