"""Find communities that overlap."""

from __future__ import annotations

from codiag.metrics import overlapping_nmi
from codiag.models import MixedMembershipCommunities
from codiag.synthetic import mixed_membership_graph


def main(n: int = 1500) -> float:
    """Find memberships, print who mixes, and return the overlapping NMI with the truth."""
    graph = mixed_membership_graph(n, 5, alpha_0=0.2, inside=0.3, outside=0.02, seed=0)
    model = MixedMembershipCommunities(alpha_0=0.2, random_state=0).fit(graph.adjacency)
    belongs = model.overlapping_labels()
    print(f"{model.n_components_} communities, with {belongs.sum(axis=0).tolist()} members")
    print(f"{(belongs.sum(axis=1) > 1).sum()} of {n} nodes belong to more than one")
    print("how often members are linked\n", model.connectivity_.round(3))
    score = overlapping_nmi(belongs, graph.memberships >= 0.3)
    print(f"overlapping NMI with the truth {score:.2f}")
    return score


if __name__ == "__main__":
    main()
