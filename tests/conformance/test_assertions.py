"""The comparisons themselves: one corrupted element, and they must raise."""

from __future__ import annotations

import numpy as np
import pytest

from shim.conformance.assertions import (
    assert_is_none,
    assert_raises,
    assert_returned,
    assert_same_array,
    assert_same_arrays,
    assert_that,
)

DTYPES = ["bool", "int8", "uint8", "int64", "float16", "float32", "float64", "complex64", "complex128"]


def sample(dtype, shape=(2, 3)):
    return (np.arange(np.prod(shape)).reshape(shape) % 2).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_equal_arrays_pass(dtype, shape):
    assert_same_array(sample(dtype, shape), sample(dtype, shape))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("position", list(np.ndindex(2, 3)))
def test_any_corrupted_element_is_found(dtype, position):
    corrupted = sample(dtype)
    corrupted[position] = not corrupted[position]
    with pytest.raises(AssertionError, match=rf"1 of 6 elements differ, the first at \[{position[0]}, {position[1]}\]"):
        assert_same_array(corrupted, sample(dtype))


def test_a_corrupted_scalar_is_found():
    with pytest.raises(AssertionError, match="1 of 1 elements"):
        assert_same_array(np.array(1.0), np.array(2.0))


def test_a_corrupted_imaginary_part_is_found():
    with pytest.raises(AssertionError, match="elements differ"):
        assert_same_array(np.array([1 + 1j]), np.array([1 + 2j]))


def test_dtype_and_shape_count():
    with pytest.raises(AssertionError, match="dtype float32 was expected, float64 seen"):
        assert_same_array(np.zeros(2), np.zeros(2, "float32"))
    with pytest.raises(AssertionError, match=r"shape \(1, 4\) was expected, \(4, 1\) seen"):
        assert_same_array(np.zeros([4, 1]), np.zeros([1, 4]))
    with pytest.raises(AssertionError, match="shape"):
        assert_same_array(np.zeros([0, 1]), np.zeros([1, 0]))


def test_a_nan_equals_a_nan_and_nothing_else():
    assert_same_array(np.array([np.nan, 1]), np.array([np.nan, 1]))
    with pytest.raises(AssertionError, match="elements differ"):
        assert_same_array(np.array([1.0]), np.array([np.nan]))
    with pytest.raises(AssertionError, match="elements differ"):
        assert_same_array(np.array([np.nan]), np.array([1.0]))


def test_lists_of_arrays():
    assert_same_arrays([sample("int8"), sample("bool")], [sample("int8"), sample("bool")])
    with pytest.raises(AssertionError, match="2 tensors were expected, 1 seen"):
        assert_same_arrays([sample("int8")], [sample("int8"), sample("int8")])
    with pytest.raises(AssertionError, match="tensor 1: 3 of 6 elements"):
        assert_same_arrays([sample("int8"), sample("int8")], [sample("int8"), sample("int8") * 2])


def raise_key_error(name):
    raise KeyError(name)


def test_assert_raises():
    assert assert_raises(KeyError, raise_key_error, "a").args == ("a",)
    assert_raises((ValueError, LookupError), raise_key_error, name="a")
    with pytest.raises(AssertionError, match="ValueError was expected, KeyError raised"):
        assert_raises(ValueError, raise_key_error, "a")
    with pytest.raises(AssertionError, match="TypeError or ValueError was expected, nothing raised: 3 returned"):
        assert_raises((TypeError, ValueError), len, "abc")


def test_assert_is_none():
    assert_is_none(None)
    with pytest.raises(AssertionError, match="0 returned"):
        assert_is_none(0)


def test_assert_that():
    assert_that(True, "unused")
    with pytest.raises(AssertionError, match="told"):
        assert_that(False, "told")


def test_assert_returned():
    assert assert_returned("a task") == "a task"
    with pytest.raises(AssertionError, match="None was returned"):
        assert_returned(None)
