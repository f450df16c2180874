"""Files that cannot be read as they are: one sentence that says what to do, status 2, no traceback, nothing written."""

from __future__ import annotations

import numpy as np
import pytest

from codiag.cli import app
from commands import runner

pytest.importorskip("pandas", reason="tables need the extra 'files'")

NAMES = ["store,product,month,value"]
LINES = [f"{s},{p},{m},{1 + s * p + m}.5" for s in range(3) for p in range(4) for m in range(5)]


def text(*lines):
    return lambda path: path.write_text("\n".join(lines) + "\n")


def merged(path):
    """Write a table whose first column has a cell in the first of several rows only."""
    blank = [line if line.split(",")[1:3] == ["0", "0"] else line[line.index(",") :] for line in LINES]
    text(*NAMES, *blank)(path)


def cut_off(path):
    """Write an array of 2 GiB by its header, of which ten bytes are there."""
    with path.open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (1024, 1024, 256)}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(b"\0" * 10)


BAD = {
    "no header": ("x.csv", text(*LINES), "--header 0"),
    "a title above the header": ("x.csv", text("Sales 2024,,,", "", *NAMES, *LINES), "--header N"),
    "decimal commas": (
        "x.csv",
        text(*(line.replace(",", ";").replace(".", ",") for line in NAMES + LINES)),
        "--sep ';'",
    ),
    "merged cells": ("x.csv", merged, "--fill-down store"),
    "text in a column of numbers": ("x.csv", text(*NAMES, *LINES, "2,3,5,n/d"), "--na 'n/d'"),
    "duplicate cells": ("x.csv", text(*NAMES, *LINES, LINES[7]), "--aggregate"),
    "empty": ("x.csv", lambda path: path.touch(), "is empty"),
    "cut off": ("x.npy", cut_off, "copy or write it again"),
    "a folder": ("x.csv", lambda path: path.mkdir(), "must be a file"),
    "a URL": ("https://example.org/x.csv", lambda _: None, "Download it first"),
    "binary": ("x.csv", lambda path: path.write_bytes(bytes(range(256)) * 8), "--encoding"),
    "unknown suffix": ("x.foo", text(*NAMES, *LINES), "must end in one of"),
}
READ = {  # the options that the sentences name
    "no header": ["--header", "0"],
    "a title above the header": ["--header", "3"],
    "decimal commas": ["--sep", ";", "--decimal", ","],
    "merged cells": ["--fill-down", "store"],
    "text in a column of numbers": ["--na", "n/d"],
    "duplicate cells": ["--aggregate", "mean"],
}


@pytest.mark.parametrize("command", ["factorize", "rank"])
@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_answered_by_one_sentence(kind, command, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="reports need the extra 'report'")
    pytest.importorskip("jinja2", reason="reports need the extra 'report'")
    monkeypatch.chdir(tmp_path)
    name, write, way_out = BAD[kind]
    write(tmp_path / name)
    before = sorted(tmp_path.iterdir())
    rank = ["--rank", "1"] if command == "factorize" else []
    result = runner.invoke(app, [command, name, *rank, "--report", "y.html", "--force"])
    assert result.exit_code == 2, result.output
    assert result.output.startswith("Error: ")
    assert result.output.count("\n") == 1
    assert way_out in result.output
    assert "Traceback" not in result.output
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("kind", READ)
def test_the_option_that_the_sentence_names_reads_the_file(kind, tmp_path):
    name, write, _ = BAD[kind]
    write(tmp_path / name)
    result = runner.invoke(app, ["factorize", str(tmp_path / name), "--rank", "1", *READ[kind]])
    assert result.exit_code == 0, result.output
    assert "(1 component of a tensor 3 " in result.output


def test_decimal_commas_are_named_once_columns_are_separated(tmp_path):
    BAD["decimal commas"][1](tmp_path / "x.csv")
    result = runner.invoke(app, ["factorize", str(tmp_path / "x.csv"), "--rank", "1", "--sep", ";"])
    assert "--decimal ," in result.output


@pytest.mark.parametrize("cell", ["1.250,5", "1,250.5"])
def test_signs_between_thousands_are_named(cell, tmp_path):
    text(*(line.replace(",", ";") for line in NAMES + LINES), f"2;3;6;{cell}")(tmp_path / "x.csv")
    result = runner.invoke(app, ["factorize", str(tmp_path / "x.csv"), "--rank", "1", "--sep", ";"])
    assert result.exit_code == 2
    assert "--thousands" in result.output


@pytest.mark.parametrize("ending", [".xlsx", ".csv"])
def test_a_messy_export_is_read_by_options_alone(ending, tmp_path):
    """A title, blank lines, merged cells, dates of the day first, a missing mark, remarks, and blanks around names."""
    pandas = pytest.importorskip("pandas")
    if ending == ".xlsx":
        pytest.importorskip("openpyxl")
    rows = [["Umsatz", None, None, None, None], [None] * 5, ["Filiale", "Produkt", "Datum", "Menge", "Bemerkung"]]
    for store in ("Nord ", "Sued"):
        for place, product in enumerate(("Brot", "Milch", "Salz")):
            for month in range(12, 0, -1):
                amount = "k.A." if (place, month) == (1, 5) else month + place
                rows.append([None if place or month < 12 else store, product, f"03.{month:02}.2024", amount, "ok"])
    frame, path = pandas.DataFrame(rows), tmp_path / f"x{ending}"
    frame.to_excel(path, index=False, header=False) if ending == ".xlsx" else frame.to_csv(
        path, index=False, header=False
    )
    options = ["--header", "3", "--fill-down", "Filiale", "--dates", "Datum:%d.%m.%Y", "--na", "k.A."]
    options += ["--modes", "Filiale,Produkt,Datum", "--value", "Menge", "--out", str(tmp_path / "out.csv")]
    result = runner.invoke(app, ["factorize", str(path), "--rank", "1", *options])
    assert result.exit_code == 0, result.output
    out = pandas.read_csv(tmp_path / "out.csv")
    assert out.loc[out["mode"] == "Filiale", "label"].tolist() == ["Nord", "Sued"]
    days = out.loc[out["mode"] == "Datum", "label"].tolist()
    assert len(days) == 12
    assert days == sorted(days)


def test_signs_between_thousands_are_not_taken_out_of_dates(tmp_path):
    lines = ["shop;item;day;sales"]
    lines += [
        f"{s};{i};{d:02}.01.2024;{1000 * (s + 1) * (i + 1) + d:,}" for s in range(3) for i in range(3) for d in (1, 2)
    ]
    text(*(line.replace(",", ".") for line in lines))(tmp_path / "x.csv")
    options = ["--sep", ";", "--decimal", ",", "--thousands", ".", "--out", str(tmp_path / "out.csv")]
    for dates in ([], ["--dates", "day:%d.%m.%Y"]):
        result = runner.invoke(app, ["factorize", str(tmp_path / "x.csv"), "--rank", "1", "--force", *options, *dates])
        assert result.exit_code == 0, result.output
        days = [line.split(",")[3][:19] for line in (tmp_path / "out.csv").read_text().splitlines() if ",day," in line]
        assert days == (["2024-01-01T00:00:00", "2024-01-02T00:00:00"] if dates else ["01.01.2024", "02.01.2024"])
    result = runner.invoke(
        app, ["factorize", str(tmp_path / "x.csv"), "--rank", "1", *options[:6], "--dates", "day:%Y"]
    )
    assert "--dates day:%Y must be a column and the format of its dates" in result.output
    assert "damaged" not in result.output


def test_without_pandas_a_table_says_how_to_get_it(tmp_path, monkeypatch):
    text(*NAMES, *LINES)(tmp_path / "x.csv")
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    result = runner.invoke(app, ["factorize", str(tmp_path / "x.csv"), "--rank", "1"])
    assert result.exit_code == 2
    assert "pip install 'codiag[files]'" in result.output
