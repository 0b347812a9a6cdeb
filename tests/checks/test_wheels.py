"""What is said of a wheel that is not as a release's should be."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from checks import wheels

NATIVE = "shim/_native.abi3.so"
FLOOR = "shim/bench/_floor.abi3.so"


@pytest.mark.parametrize(
    ("tag", "version", "files", "told"),
    [
        ("cp312-abi3-manylinux_2_27_x86_64.manylinux_2_28_x86_64", "3.12", {NATIVE: 9, FLOOR: 9}, ""),
        ("cp310-cp310-manylinux_2_28_aarch64", "3.10", {NATIVE: 9, FLOOR: 9}, ""),
        ("cp310-cp310-manylinux_2_28_aarch64", "3.10", {NATIVE: 4_000_000, FLOOR: 9}, "has more than 3.0 MB: 4.0"),
        ("cp310-cp310-manylinux_2_39_x86_64", "3.10", {NATIVE: 9, FLOOR: 9}, "needs a newer glibc than 2.28"),
        ("cp310-cp310-linux_x86_64", "3.10", {NATIVE: 9, FLOOR: 9}, "needs a newer glibc than 2.28"),
        ("cp310-cp310-manylinux_2_28_x86_64", "3.10", {NATIVE: 9, FLOOR: 9, "libs/libc++.so": 9}, "brings other"),
        ("cp312-cp312-manylinux_2_28_x86_64", "3.12", {NATIVE: 9, FLOOR: 9}, "does not serve all later Pythons"),
    ],
)
def test_what_is_wrong_with_a_wheel(tmp_path: Path, tag: str, version: str, files: dict[str, int], told: str) -> None:
    wheel = tmp_path / f"shim_collectives-0.1.0-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, size in files.items():
            archive.writestr(name, bytes(size))
    found = wheels.faults(wheel, version)
    assert len(found) == bool(told)
    assert all(told in one for one in found)


def test_a_python_that_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert wheels.main(["--machines", "x86_64", "--into", str(tmp_path / "dist")]) == 1
    printed = capsys.readouterr().out
    assert "no wheel for Python 3.10 on x86_64: python3.10 was not found" in printed
    assert "nothing was tried: no Python was found" in printed
