"""What every chapter says in two sentences, where the paper's figures and tables are, and the paper's errors."""

from __future__ import annotations

PLACES: tuple[tuple[str, str], ...] = (
    ("Figure 1: random and plug-in projections", "projections"),
    ("Figure 2, top, and supplementary figure: orthogonal tensors", "orthogonal"),
    ("Figure 2, bottom, and supplementary figure: non-orthogonal tensors", "nonorthogonal"),
    ("Figure 3: communities", "communities"),
    ("Table 1 and the theorems", "bounds"),
    ("Table 2: crowds", "crowd"),
    ("Supplementary figure: asymmetric tensors", "asymmetric"),
    ("Supplementary figure: flops", "flops"),
    ("Section 3: running time of Algorithm 1", "growth"),
    ("Sections 5 and 7: incoherence", "incoherence"),
    ("Section 5 and its proofs: norm of the inverse factors", "norms"),
    ("Section 6: tensors of higher order", "orders"),
    ("Section 7: convergence", "convergence"),
    ("Section 7: starts on crowd data", "starts"),
    ("Section 8: single topic model", "topic"),
    ("The authors' scripts", "drivers"),
    ("The authors' README", "readme"),
)
"""Figures, tables and sections of the paper, and the chapter about each."""
FINDINGS: dict[str, tuple[str, str]] = dict.fromkeys((name for _, name in PLACES), ("...", "..."))
ERRATA: tuple[tuple[str, str, str], ...] = (
    (
        "Section 8, synthetic experiments",
        'OJD is up to three times more accurate in the "full-rank non-orthogonal setting".',
        "Orthogonal: OJD is for orthogonal tensors, and the supplementary material says so of the same figure.",
    ),
    (
        "Introduction and section 8, crowds",
        "EM is matched or outperformed on three of the four datasets (introduction); on two (section 8).",
        "By the paper's own Table 2 it is two: Birds and Dogs.",
    ),
    (
        "Table 2, size of Birds",
        "106 tasks.",
        "108: the printed percentages are 95, 96 and 97 of 108.",
    ),
    (
        "Table 2, Web",
        "Percentages of 2665 tasks.",
        "12 of these have no true label; over the 2653 that have one, all values are 0.4 points higher.",
    ),
    (
        "Appendix, lemma on E_ij for free factors",
        "Divides by |lambda_i|^2 for every i.",
        "lambda_i = 0 for i > k: the proofs of both free theorems do not cover k < d.",
    ),
    (
        "Section 5 and its proofs",
        "The norm of V is at most 1 + O(mu) if factors are incoherent.",
        "The constant grows with the number of factors: unit vectors drawn at random with k = d are incoherent, and "
        "the norm grows like d (claim 36).",
    ),
    (
        "Section 3, Algorithm 1",
        "Running time O(k^2 d^2 s).",
        "The k projections before the sweeps cost k d^3, which is more for k < d and few sweeps (claim 35).",
    ),
    (
        "Supplementary material, flops of Jacobi",
        "2 d L (d k - binom(k, 2)) a sweep.",
        "The authors' program counts (k + 1) k / 2 in place of binom(k, 2), and counts the sweeps of the first stage "
        "for OJD1; a rotation of two rows and two columns costs four times the formula (claim 16).",
    ),
    (
        "Section 6, asymmetric reduction",
        "The reduction does not change the modulus of uniqueness.",
        "Every component appears twice, with diagonals of opposite sign, so that the modulus of these twins is one; it "
        "is unchanged between all others (claim 32).",
    ),
    (
        "The authors' script for free tensors",
        "Asks the rivals for min(k + 1, d) components, and NOJD for k.",
        "k for all; with the nearest-estimate measure a further component can only lower the rivals' errors.",
    ),
)
"""Where, what the paper says, and what is right."""
