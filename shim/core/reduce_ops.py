"""The reduce ops of the engines, and the dtypes each is defined for."""

from __future__ import annotations

from enum import IntEnum


class ReduceOp(IntEnum):
    """How a reducing collective combines the ranks' elements, in the order of group ranks.

    The numbers are the engines' own: a frontend translates its framework's ops by name, never by number.
    ``AVG`` is defined for floats and complex numbers, ``MIN`` and ``MAX`` for all but complex numbers (a NaN
    wins), ``BAND``/``BOR``/``BXOR`` for integers and bool, ``PREMUL_SUM`` (each rank's element times that
    rank's factor, then summed) for floats and complex numbers. On bool, SUM and MAX are "or", PRODUCT and MIN "and".
    """

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8
