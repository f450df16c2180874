"""Classes to derive from when you add a model of your own.

A latent-variable model derives from `MomentModel`: `MomentModel.moments` returns `Moments`, the moment to factorize,
and `MomentModel.parameters` returns `Components` with their `Diagnostics`.

Examples
--------
>>> import numpy as np
>>> import codiag
>>> from codiag.extending import Components, Diagnostics, MomentModel, Moments
>>> class SymmetricComponents(MomentModel):
...     def moments(self, data):
...         return Moments(problem=codiag.Problem(data, self.n_components, symmetric=True))
...     def parameters(self, fit, moments):
...         return Components(weights=fit.weights, diagnostics=Diagnostics.of(fit))
>>> SymmetricComponents(1, random_state=0).fit(np.ones((2, 2, 2))).weights_.round(3).tolist()
[2.828]
"""

from codiag.models.frame import Components, Diagnostics, MomentModel, Moments

__all__ = ["Components", "Diagnostics", "MomentModel", "Moments"]
