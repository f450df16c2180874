"""Find the truth behind votes that disagree, and who can be trusted."""

from __future__ import annotations

import numpy as np

from codiag.models import DawidSkene
from codiag.synthetic import crowd_votes, worker_errors


def main(n: int = 3000) -> float:
    """Label tasks, print the workers, and return the share of labels that are right."""
    crowd = crowd_votes(n, worker_errors(20, 4, adversarial=0.2, seed=0), density=0.3, seed=1)
    model = DawidSkene(random_state=0).fit(crowd.votes)
    right = float(np.mean(model.labels_ == crowd.truth[model.tasks_]))
    table = model.worker_table()
    for worker in np.argsort(-table["accuracy"]):
        low, high = table["low"][worker], table["high"][worker]
        print(f"worker {worker:2}: {table['accuracy'][worker]:.2f} right, between {low:.2f} and {high:.2f}")
    majority = DawidSkene(init="majority", em_rounds=0).fit(crowd.votes)
    voted = float(np.mean(majority.labels_ == crowd.truth[majority.tasks_]))
    print(f"{right:.1%} of the labels are right; of those of the majority {voted:.1%}")
    return right - voted


if __name__ == "__main__":
    main()
