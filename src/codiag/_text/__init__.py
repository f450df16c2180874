"""Text files, tables, data frames and HTML: reading and writing."""

from codiag._text._files import (
    as_file,
    as_path,
    check_npz,
    checked_ending,
    ending_of,
    is_packed,
    open_binary,
    open_text,
    read_mat,
    read_numbers,
    readable,
    reason_of,
)
from codiag._text._tables import (
    ABSENT,
    SEPARATORS,
    as_frame,
    categories_of,
    column_of,
    is_number,
    is_whole,
    read_frame,
    refuse_lines,
    rows_of,
    table_rows,
    values_of,
)
from codiag._text._writing import html_table, inert, save_arrays, visible, write_text, written_at_once
