"""Throw inputs of all kinds at every public name of codiag, and look whether what it says is true.

``python -m tests.fuzz --inputs 10000 --seed 0`` draws inputs, ``--only INDEX`` shows one of them. A generator makes the
inputs of one public function: it lies in `areas`, in the file of its area, and registers itself with `covers`.
"""
