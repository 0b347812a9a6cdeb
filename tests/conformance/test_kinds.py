"""The adapters: what they make, cut and read back, for every kind of tensor; and which kinds are chosen."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from shim.conformance import kinds
from shim.conformance.assertions import assert_same_array
from shim.conformance.kinds import KINDS, UNWRITTEN, Selection, is_installed, kind_named, select_kinds

# In a process of its own, because frameworks do not all bear being imported into one.
ROUND_TRIPS = """
import json, sys
import numpy as np
from shim.conformance.kinds import kind_named
kind = kind_named(sys.argv[1])
whole = kind.make(np.arange(6, dtype="int64"))
source = np.array([1.0, 2.0], "float32")
made = kind.make(source)
source[0] = 9.0
print(json.dumps({
    "dtypes": [str(kind.read(kind.make(np.zeros(2, dtype))).dtype) for dtype in ("int64", "float32", "complex64")],
    "parts": [kind.read(part).tolist() for part in kind.split(whole, [1, 3, 2])],
    "blank": kind.read(kind.blank([2, 2], "float32")).tolist(),
    "shapes": [list(kind.read(kind.make(np.zeros(shape, "float32"))).shape) for shape in ((), (0,), (2, 3))],
    "own memory": kind.read(made).tolist(),
    "version": kind.version,
}))
"""


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_makes_cuts_and_reads(name):
    child = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ROUND_TRIPS, name],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    told = json.loads(child.stdout.splitlines()[-1])
    assert told.pop("version")
    assert told == {
        "dtypes": ["int64", "float32", "complex64"],
        "parts": [[0], [1, 2, 3], [4, 5]],
        "blank": [[UNWRITTEN] * 2] * 2,
        "shapes": [[], [0], [2, 3]],
        "own memory": [1.0, 2.0],
    }


def test_what_is_read_is_a_copy():
    numpy = kind_named("numpy")
    array = np.zeros(2)
    numpy.read(array)[0] = 1
    assert_same_array(array, np.zeros(2))


def test_numpy_reads_arrays_alone():
    with pytest.raises(TypeError, match="list seen"):
        kind_named("numpy").read([1, 2])


def test_a_folder_with_a_framework_s_name_is_no_framework(tmp_path, monkeypatch):
    (tmp_path / "no_such_framework").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert not is_installed("no_such_framework")
    assert not is_installed("nor_this_one")
    assert is_installed("numpy")


def test_without_frameworks_numpy_runs(monkeypatch):
    monkeypatch.setattr(kinds, "is_installed", lambda kind: kind == "numpy")
    assert select_kinds(None) == Selection(("numpy",), (), ("torch", "paddle", "mindspore"))
