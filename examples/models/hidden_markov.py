"""Learn a hidden Markov model from one long sequence of symbols."""

from __future__ import annotations

import numpy as np

from codiag.models import HiddenMarkov

TRANSITIONS = np.array([[0.90, 0.08, 0.02], [0.05, 0.90, 0.05], [0.10, 0.10, 0.80]])
EMISSIONS = np.array([[0.7, 0.2, 0.05, 0.05, 0, 0], [0, 0.1, 0.7, 0.1, 0.1, 0], [0.05, 0.05, 0, 0.1, 0.4, 0.4]])


def simulate(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return symbols, and the states that emitted them."""
    states = np.zeros(n, dtype=int)
    for step in range(1, n):
        states[step] = rng.choice(3, p=TRANSITIONS[states[step - 1]])
    symbols = np.array([rng.choice(6, p=EMISSIONS[state]) for state in states])
    return symbols, states


def main(n: int = 20_000) -> float:
    """Fit, decode, and return the share of states that the most probable path gets right."""
    symbols, states = simulate(n, np.random.default_rng(0))
    model = HiddenMarkov(3, polish=5, random_state=0).fit(symbols)
    print("transitions\n", model.transmat_.round(2))
    print("emissions\n", model.emissionprob_.round(2))
    path = model.predict(symbols)
    agreement = np.array([[np.mean((path == i) & (states == j)) for j in range(3)] for i in range(3)])
    right = float(agreement.max(axis=1).sum())
    print(f"log-likelihood {model.score(symbols):.0f}; {right:.0%} of the states decoded")
    return right


if __name__ == "__main__":
    main()
