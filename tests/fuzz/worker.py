"""A process that runs inputs by their numbers and says what became of them; it may die, the runner does not."""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile

MEMORY = 6 * 2**30
"""Bytes of address space: a call that asks for more gets a `MemoryError`, which is a finding."""


def main() -> None:
    """Read numbers of inputs from the standard input, write one line of JSON for each to what was the output."""
    seed, areas, module = int(sys.argv[1]), set(filter(None, sys.argv[2].split(","))), sys.argv[3] or None
    limit = float(sys.argv[4])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing a library prints may get among the answers
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from .case import load_generators, make_case
    from .watch import examine

    registry = load_generators(module)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CODIAG_FUZZ_FOLDER"] = folder
        answers.write("ready\n")
        answers.flush()
        for line in sys.stdin:
            index = int(line)
            generator, case = make_case(seed, index, registry)
            if areas and generator.area not in areas:
                answers.write("skipped\n")
            else:
                answers.write(json.dumps([case.function, generator.area]) + "\n")
                answers.flush()
                answers.write(json.dumps(examine(generator, case, index, limit=limit, deadly=True)) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
