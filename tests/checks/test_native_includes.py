from __future__ import annotations

import pytest

from checks import native_includes


def test_each_folder_includes_itself_and_those_below_it(write_tree) -> None:
    tree = write_tree(
        {
            "native/group/group.hpp": '#include <string>\n#include "platform/pause.hpp"\n#include "group/crowd.hpp"\n',
            "native/group/crowd.hpp": '#include "machine/caches.hpp"\n',
            "native/machine/caches.hpp": "",
            "native/platform/pause.hpp": "",
        }
    )
    assert native_includes.check(tree) == []


@pytest.mark.parametrize(
    ("name", "finding"),
    [
        ("group/group.hpp", 'platform/ may not include group/, as "group/group.hpp"'),
        (
            "../group/group.hpp",
            '"../group/group.hpp" is no file of native/, from which includes are written as "folder/file.hpp"',
        ),
        ("pause.hpp", '"pause.hpp" is no file of native/, from which includes are written as "folder/file.hpp"'),
    ],
)
def test_other_includes_are_found(write_tree, name: str, finding: str) -> None:
    tree = write_tree(
        {
            "native/group/group.hpp": "",
            "native/platform/pause.hpp": "",
            "native/platform/process.cpp": f'#include "{name}"\n',
        }
    )
    assert native_includes.check(tree) == [f"native/platform/process.cpp: {finding}"]


def test_a_folder_that_the_table_does_not_have_includes_nothing_else(write_tree) -> None:
    tree = write_tree({"native/new/a.hpp": '#include "platform/b.hpp"\n', "native/platform/b.hpp": ""})
    assert native_includes.check(tree) == ['native/new/a.hpp: new/ may not include platform/, as "platform/b.hpp"']


@pytest.mark.parametrize(
    ("file", "name", "finding"),
    [
        ("bindings/module.cpp", "bindings/tensors/bit.hpp", ""),
        ("bindings/tensors/bit.hpp", "bindings/module.hpp", "bindings/tensors/ may not include bindings/"),
        ("tests/group/test_crowd.cpp", "tests/ranks.hpp", ""),
        ("tests/group/test_crowd.cpp", "model/steps.hpp", "tests/ may not include model/"),
    ],
)
def test_a_folder_within_a_folder_has_a_row_of_its_own_or_that_of_the_one_above(
    write_tree, file: str, name: str, finding: str
) -> None:
    tree = write_tree({f"native/{name}": "", f"native/{file}": f'#include "{name}"\n'})
    assert native_includes.check(tree) == ([f'native/{file}: {finding}, as "{name}"'] if finding else [])


def test_circles_of_files_are_found(write_tree) -> None:
    tree = write_tree(
        {
            "native/group/a.hpp": '#include "group/b.hpp"\n',
            "native/group/b.hpp": '#include "group/c.hpp"\n',
            "native/group/c.hpp": '#include "group/b.hpp"\n',
        }
    )
    assert native_includes.check(tree) == ["native/group/b.hpp includes group/c.hpp includes group/b.hpp"]


def test_no_two_folders_may_include_each_other() -> None:
    below: set[str] = set()
    for folder, others in native_includes.MAY_INCLUDE.items():
        assert set(others) <= below, folder
        below.add(folder)
