"""Which reductions an MPI library does right, and by which of its types and operations."""

from __future__ import annotations

from typing import Any

from shim.core.reduce_ops import ReduceOp

_TYPES = {
    "uint8": "UINT8_T",
    "int8": "INT8_T",
    "uint16": "UINT16_T",
    "int16": "INT16_T",
    "uint32": "UINT32_T",
    "int32": "INT32_T",
    "uint64": "UINT64_T",
    "int64": "INT64_T",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "complex64": "C_FLOAT_COMPLEX",
    "complex128": "C_DOUBLE_COMPLEX",
}
_INTEGER_OPS = {
    ReduceOp.SUM: "SUM",
    ReduceOp.PRODUCT: "PROD",
    ReduceOp.MIN: "MIN",
    ReduceOp.MAX: "MAX",
    ReduceOp.BAND: "BAND",
    ReduceOp.BOR: "BOR",
    ReduceOp.BXOR: "BXOR",
}
# Open MPI's sums of these end at the largest number instead of wrapping around, https://github.com/open-mpi/ompi/issues/8045.
_SATURATING = ("uint8", "int8", "uint16", "int16")
_BOOL_OPS = {
    ReduceOp.SUM: "LOR",
    ReduceOp.MAX: "LOR",
    ReduceOp.BOR: "LOR",
    ReduceOp.PRODUCT: "LAND",
    ReduceOp.MIN: "LAND",
    ReduceOp.BAND: "LAND",
    ReduceOp.BXOR: "LXOR",
}
# Not MIN and MAX: a NaN does not win with MPI, and MPICH gives the ranks different results then.
_FLOAT_OPS = {ReduceOp.SUM: "SUM", ReduceOp.PRODUCT: "PROD"}
_COMPLEX_OPS = {ReduceOp.SUM: "SUM"}  # a product may differ in its last bits with the order of its factors
_SHORT_FLOATS = {"float16": "FLOAT16_T", "bfloat16": "BFLOAT16_T"}


def reduction_of(mpi: Any, dtype: str, op: ReduceOp, size: int) -> tuple[Any, Any] | None:
    """Return the MPI type and operation that combine *dtype* by *op* on *size* ranks, None if the library has none that is right.

    MPI rounds sums of 16-bit floats after each step. On two ranks there is one step, and its result is right.
    """
    if dtype in _SHORT_FLOATS:
        name = getattr(mpi, _SHORT_FLOATS[dtype], mpi.DATATYPE_NULL)
        return (name, mpi.SUM) if op == ReduceOp.SUM and size <= 2 and name != mpi.DATATYPE_NULL else None
    if dtype == "bool":
        type_name, operations = "UINT8_T", _BOOL_OPS
    else:
        type_name = _TYPES.get(dtype, "")
        operations = _operations_on(dtype)
    if not type_name or op not in operations:
        return None
    return getattr(mpi, type_name), getattr(mpi, operations[op])


def _operations_on(dtype: str) -> dict[ReduceOp, str]:
    if dtype in _SATURATING:
        return {op: name for op, name in _INTEGER_OPS.items() if op != ReduceOp.SUM}
    if dtype.startswith("float"):
        return _FLOAT_OPS
    return _COMPLEX_OPS if dtype.startswith("complex") else _INTEGER_OPS
