"""A figure that belongs to no window, and that notebooks show. Imported where a figure is drawn, with matplotlib."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure


class Picture(Figure):
    """A figure that tells notebooks its own image, whether or not pyplot was imported."""

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png", dpi=self.dpi)
        return file.getvalue()
