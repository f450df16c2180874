"""The demonstration: two factorizations from end to end, beside rivals that are installed, with a figure."""
