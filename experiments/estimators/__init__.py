"""Estimators and baselines of the paper's experiments that the library does not offer, as their authors ran them."""
