"""How much steps are held back, after Levenberg and Marquardt."""

from __future__ import annotations


class Damping:
    """How much steps are held back: less where the model was right about the last one, more where it was not."""

    def __init__(self) -> None:
        self.value, self._growth = 1e-3, 2.0

    @property
    def exhausted(self) -> bool:
        """Whether steps were refused so often that rounding must be to blame."""
        return self._growth >= 2.0**20

    def accept(self, ratio: float) -> None:
        """Follow the ratio of what a step has gained to what it promised."""
        self.value = max(self.value * min(max(0.1, 1 - (2 * ratio - 1) ** 3), 2.0), 1e-14)
        self._growth = 2.0

    def refuse(self) -> None:
        self.value, self._growth = self.value * self._growth, 2 * self._growth
