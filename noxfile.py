#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""What CI does, session by session, in environments of their own: ``nox -l`` lists, ``nox -s lint tests`` runs.

`make` does the same in one environment; see CONTRIBUTING.md.
"""

from __future__ import annotations

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
PARALLEL = ("--numprocesses", "auto", "--dist", "worksteal")
ALL = ("--doctest-modules", "tests", "src")
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def install(session: nox.Session, extras: str, *groups: str) -> None:
    """Install this copy with extras and groups of pyproject.toml."""
    session.install("--editable", f".[{extras}]" if extras else ".", *(f"--group={group}" for group in groups))


@nox.session
def lint(session: nox.Session) -> None:
    """Check the form of code, docstrings and pages, and types."""
    install(session, "plot", "dev")
    session.run("pre-commit", "run", "--all-files", *session.posargs)
    session.run("mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the whole suite."""
    install(session, "plot,data", "test", "baselines", "optional")
    session.run("pytest", *PARALLEL, *ALL, *session.posargs, env=ONE_THREAD)


@nox.session(default=False)
def lowest(session: nox.Session) -> None:
    """Run the quick part of the suite on the lowest versions that are declared."""
    session.install("--constraint", ".ci/lowest.txt", "--editable", ".", "--group=test")
    session.run("pytest", "-m", "not slow", *PARALLEL, *session.posargs, env=ONE_THREAD)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the site into docs/_build/html; a warning is an error."""
    install(session, "plot,data", "docs")
    session.run("sphinx-build", "--fail-on-warning", "--keep-going", "docs", "docs/_build/html", env=ONE_THREAD)


@nox.session(default=False)
def readme(session: nox.Session) -> None:
    """Measure the figures of the README again, before a release."""
    install(session, "plot", "bench")
    session.run("python", "-m", "benchmarks.readme", *session.posargs, env=ONE_THREAD)


@nox.session(default=False)
def versions(session: nox.Session) -> None:
    """Compare the lowest versions with the calendar of SPEC 0; needs the network."""
    session.run("python", ".ci/spec0.py")


if __name__ == "__main__":
    nox.main()
