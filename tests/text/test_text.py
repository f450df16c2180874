"""Files that are written at once, and text for terminals and notebooks."""

from __future__ import annotations

import pytest

from codiag._text import atomic_write, escape_control, html_table, text_table, write_text


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "x.txt"
    write_text(path, "old")

    def broken():
        with atomic_write(path) as file:
            file.write(b"half")
            raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        broken()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match="is not a"):
        write_text(tmp_path / "none" / "x.txt", "new")


def test_control_characters_are_shown_as_text():
    assert escape_control("a\x1b[2J\u202eb\n日本") == r"a\x1b[2J\u202eb\n日本"


def test_tables_of_text_and_html_show_all_cells_as_text():
    columns = {"name": ["<b>", "a\nb"], "count": [1, 20]}
    assert text_table(columns).splitlines() == ["name  count", "<b>       1", r"a\nb     20"]
    assert "&lt;b&gt;" in html_table("title", columns)
