"""Labels from a crowd by the names of ``crowdkit.aggregation``: change the import and nothing else."""

from codiag.drop_in._crowdkit_models import DawidSkene, OneCoinDawidSkene

__all__ = ["DawidSkene", "OneCoinDawidSkene"]
