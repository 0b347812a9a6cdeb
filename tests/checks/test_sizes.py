from __future__ import annotations

import pytest

from checks import sizes


@pytest.mark.parametrize(
    ("file", "limit"),
    [("shim/a.py", 400), ("tests/b.py", 400), ("native/c.cpp", 300), ("native/collectives/d.hpp", 300)],
)
def test_the_line_after_the_last_is_one_too_many(write_tree, file: str, limit: int) -> None:
    assert sizes.check(write_tree({file: "x\n" * limit})) == []
    assert sizes.check(write_tree({file: "x\n" * (limit + 1)})) == [
        f"{file}: {limit + 1} lines, at most {limit}: find its two jobs"
    ]


def test_data_may_be_long(write_tree) -> None:
    assert sizes.check(write_tree({"shim/a.json": "1\n" * 5000})) == []


def test_one_file_more_than_a_folder_may_have_is_found(write_tree) -> None:
    files = {f"tests/core/test_{number}.py": "" for number in range(sizes.FILES)}
    files |= {"tests/core/engines/test_a.py": "", "tests/core/data.json": ""}
    assert sizes.check(write_tree(files)) == []
    assert sizes.check(write_tree({**files, "tests/core/more.py": ""})) == [
        f"tests/core: {sizes.FILES + 1} files, at most {sizes.FILES}: give its parts folders"
    ]
