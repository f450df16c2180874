"""Paths of files, atomic writing, and text for terminals and notebooks."""

from codiag._text._files import as_file, as_npz, as_path, ending_of, installed, open_text, readable, reason_of
from codiag._text._writing import (
    ReprMixin,
    Table,
    atomic_write,
    counted,
    described,
    escape_control,
    html_paragraphs,
    html_table,
    listed,
    save_arrays,
    text_table,
    write_text,
)
