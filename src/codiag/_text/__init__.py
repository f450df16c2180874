"""Text files, tables, data frames and HTML: reading and writing."""

from codiag._text._described import Described, described
from codiag._text._encoding import open_text, text_of, text_start
from codiag._text._files import (
    as_file,
    as_path,
    check_npz,
    checked_ending,
    ending_of,
    is_packed,
    open_binary,
    read_mat,
    read_numbers,
    readable,
    reason_of,
)
from codiag._text._separators import SEPARATORS, is_number
from codiag._text._tables import (
    ABSENT,
    TABLES,
    as_frame,
    categories_of,
    column_of,
    is_whole,
    read_frame,
    refuse_lines,
    rows_of,
    table_rows,
    values_of,
)
from codiag._text._writing import (
    counted,
    html_paragraphs,
    html_table,
    inert,
    save_arrays,
    text_table,
    visible,
    write_text,
    written_at_once,
)
