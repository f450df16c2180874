"""Text files, data frames and HTML tables: reading and writing."""

from codiag._text._frames import SEPARATORS, as_entries, ending_of, read_frame
from codiag._text._html import html_table
from codiag._text._reading import as_file, as_path, check_npz, read_mat, read_numbers, readable, reason_of
from codiag._text._rows import ABSENT, checked_ending, is_whole, refuse_lines, rows_of, table_rows
from codiag._text._writing import inert, save_arrays, visible, write_text, written_at_once
