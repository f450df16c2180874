from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import codiag
from codiag.cli import app

runner = CliRunner()


def test_version():
    result = runner.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"codiag {codiag.__version__}\n"


def test_module_entry_point():
    done = subprocess.run([sys.executable, "-m", "codiag", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"codiag {codiag.__version__}"


def test_demo_prints_a_table_and_saves_a_figure(tmp_path):
    pytest.importorskip("matplotlib", reason="the figure needs the extra 'plot'")
    figure = tmp_path / "demo.png"
    result = runner.invoke(app, ["demo", "--size", "6", "--figure", str(figure)])
    assert result.exit_code == 0, result.output
    for method in ("OrthogonalNewton", "Jacobi", "UWEDGE", "JDi", "LUJ1D", "QRJ1D"):
        assert method in result.stdout
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = runner.invoke(app, ["demo", "--size", "4", "--figure", str(tmp_path / "demo.png")])
    assert result.exit_code == 0
    assert "pip install 'codiag[plot]'" in result.output
    assert not (tmp_path / "demo.png").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--figure", "nowhere/at/all/demo.png"], "folder that exists"),
        (["--figure", "demo.txt"], "must end in .png"),
        (["--size", "1"], "--size"),
        (["--noise", "-1"], "--noise"),
    ],
)
def test_mistakes_end_in_one_sentence(options, words):
    result = runner.invoke(app, ["demo", *options])
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output


def test_no_arguments_shows_help():
    result = runner.invoke(app, [])
    assert "demo" in result.output
