"""Functions that array libraries do not share, limits of threads, and Anderson acceleration."""

from codiag._arrays._anderson import Extrapolation
from codiag._arrays._complex import (
    adjoint,
    as_real_numbers,
    asymmetric,
    conjugate,
    is_hermitian,
    largest_signs,
    normal_draws,
    real_part,
    signs_of,
    squared_magnitudes,
)
from codiag._arrays._dask import FAN_IN, is_dask, pass_with
from codiag._arrays._namespace import (
    BLOCK,
    Array,
    TensorLike,
    all_equal,
    array_namespace,
    asarray_like,
    blocks,
    eigenpairs,
    epsilon,
    fits_block,
    identity,
    inner_product_of,
    is_complex,
    is_mutable,
    matrix_transpose,
    on_host,
    squares,
    sum_along,
    take,
    to_double,
    to_double_if_cheap,
    to_host,
    to_namespace,
    widest,
)
from codiag._arrays._threads import SMALL_PRODUCT, ThreadLimit, few_threads, in_threads, n_threads
