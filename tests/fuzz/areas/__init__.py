"""Generators, one file for each area of codiag."""
