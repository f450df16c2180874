"""Text as programs write it: encodings, separators and decimals, and tables of spreadsheets."""

from __future__ import annotations

import gzip
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codiag._text import read_frame, rows_of, text_of
from codiag.io import read_votes

NAMES = ["Zoë", "Åsa", "Jürgen", "naïve “quote” for 5 €"]


def written(path, text, encoding):
    content = text.encode(encoding)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_text_is_read_in_its_encoding(name, encoding, tmp_path, caplog):
    text = "name,value\n" + "".join(f"{one},{place}\n" for place, one in enumerate(NAMES))
    path = written(tmp_path / name, text, encoding)
    with caplog.at_level("INFO", logger="codiag.reading"):
        assert text_of(path) == text
        assert read_frame(path)["name"].tolist() == NAMES
    assert ("is read as Latin-1 (Windows-1252)" in caplog.text) == (encoding == "cp1252")


@pytest.mark.parametrize("mark", ["utf-16-le", "utf-16-be"])
def test_text_without_its_mark_is_refused_by_the_name_of_its_encoding(mark, tmp_path):
    path = written(tmp_path / "t.csv", "name,välue\nx,1\n", mark)
    with pytest.raises(ValueError, match=r"t\.csv cannot be read as text: it seems to be UTF-16 without the mark"):
        read_frame(path)


@pytest.mark.parametrize(("content", "byte"), [(b"a,b\n\xe4\x02,1\n", "0x02"), (b"a,b\n\xe4\x81,1\n", "0x81")])
def test_bytes_that_are_no_text_are_named(content, byte, tmp_path):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(ValueError, match=rf"neither UTF-8 nor Latin-1.*since byte 5 is {byte}; save it as UTF-8"):
        read_frame(tmp_path / "t.csv")


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_separators_are_found_whatever_the_ending(ending, separator, decimal, tmp_path):
    if separator == decimal:
        pytest.skip("fields with commas between have no decimal commas")
    rows = [["label, of rows" if separator != "," else "label", "a", "b"], ["x", "1.5", "2"], ["y, z", "3.25", "4.5"]]
    rows = [[cell.replace(".", decimal) for cell in row] for row in rows]
    quoted = [[f'"{cell}"' if separator in cell else cell for cell in row] for row in rows]
    path = written(tmp_path / f"t{ending}", "\n".join(map(separator.join, quoted)), "utf-8")
    frame = read_frame(path)
    assert frame.columns == rows[0]
    np.testing.assert_array_equal(frame["a"], [1.5, 3.25])
    assert [row for _, row in rows_of(path, ",")] == rows


@settings(deadline=None, max_examples=30)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8), min_size=1))
def test_one_column_of_any_text_stays_one_column(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("one") / "t.csv"
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
    path.write_text("\n".join(["text", *quoted]), encoding="utf-8")
    assert [row for _, row in rows_of(path, ",")] == [["text"], *([cell] for cell in cells)]


def test_texts_of_many_lines_do_not_hide_the_separator(tmp_path):
    long = "\n".join(["a; line; of, text"] * 30)
    path = written(tmp_path / "t.csv", f'id\ttext\n1\t"{long}"\n2\tshort, text\n', "utf-8")
    assert read_frame(path)["text"].tolist() == [long, "short, text"]


def test_votes_in_a_table_of_a_spreadsheet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl", reason="openpyxl is not installed; pandas reads .xlsx files by it")
    votes = {"item": [1, 1, 2], "rater": ["ann", "bob", "ann"], "rating": ["yes", "no", "yes"]}
    pandas.DataFrame(votes).to_excel(tmp_path / "v.xlsx", index=False)
    read = read_votes(tmp_path / "v.xlsx")
    assert [column.tolist() for column in read.values()] == list(votes.values())


@pytest.mark.parametrize(("ending", "packages"), [(".xlsx", "pandas openpyxl"), (".parquet", "pyarrow")])
def test_what_reads_a_table_is_named_if_it_is_not_installed(ending, packages, tmp_path, monkeypatch):
    for module in ("pandas", "polars", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / f"t{ending}").write_bytes(b"PK\3\4")
    with pytest.raises(
        ValueError, match=rf"no library that reads \{ending} files is installed.*pip install {packages}$"
    ):
        read_frame(tmp_path / f"t{ending}")
