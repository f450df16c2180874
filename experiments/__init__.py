"""Programs that show what the library does, each returning data for tables and figures."""
