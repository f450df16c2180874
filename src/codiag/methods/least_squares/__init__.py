"""Least squares for the components of a tensor: the engine that the methods share."""
