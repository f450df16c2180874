"""A figure that belongs to no window. This module imports matplotlib: import it inside functions."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure


class Picture(Figure):
    """A figure that notebooks show, whether or not pyplot was imported."""

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png", dpi=self.dpi)
        return file.getvalue()
