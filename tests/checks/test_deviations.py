from __future__ import annotations

import pytest

from checks import deviations

SOURCE = '''
    """A frontend.

    Deviates: in everything.
    """

    from shim.frontends.torch._work import Work

    __all__ = ["Work", "recv", "send"]

    def recv(tensor):
        """Receive.

        Raises: RankError.
        Deviates: gives | back the rank,
            where none is expected.
        See: a page.
        """

    def send(tensor):
        """Send. It deviates: no."""

    def _private(tensor):
        """Deviates: unseen."""
    '''

WORK = '''
    __all__ = ["Unlisted", "Work"]

    class Work:
        """Handle.

        Deviates: has no result.

        More words.
        """

        def wait(self):
            """Wait.

            Deviates: returns True."""

    class Unlisted:
        """Deviates: unseen."""
    '''
TREE = {"shim/frontends/torch/distributed.py": SOURCE, "shim/frontends/torch/_work.py": WORK}


def test_each_deviation_is_a_row(write_tree) -> None:
    page = deviations.render(write_tree(TREE))
    assert page.startswith("# Deviations\n")
    assert page.partition("## ")[2] == (
        "shim.frontends.torch.distributed\n\n"
        "| name | what differs |\n| --- | --- |\n"
        "| `distributed` | in everything. |\n"
        "| `Work` | has no result. |\n"
        "| `Work.wait` | returns True. |\n"
        "| `recv` | gives \\| back the rank, where none is expected. |\n"
    )


def test_two_modules_of_a_frontend_tell_it_once_and_two_frontends_twice(write_tree) -> None:
    offer = 'from shim.frontends.torch._work import Work\n__all__ = ["Work"]\n'
    again = {
        f"shim/frontends/{name}.py": offer for name in ("torch/more", "paddle_2/distributed", "paddle_3/distributed")
    }
    page = deviations.render(write_tree({**TREE, **again}))
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        "## shim.frontends.paddle_2.distributed",
        "## shim.frontends.paddle_3.distributed",
        "## shim.frontends.torch.distributed",
    ]


def test_a_page_that_says_the_same_passes(write_tree) -> None:
    root = write_tree(TREE)
    write_tree({str(deviations.PAGE): deviations.render(root)})
    assert deviations.check(root) == []


@pytest.mark.parametrize("page", [None, "", "# Deviations\n"])
def test_a_page_that_says_something_else_is_found(write_tree, page: str | None) -> None:
    root = write_tree(TREE)
    if page is not None:
        write_tree({str(deviations.PAGE): page})
    assert deviations.check(root) == [
        "docs/deviations.md:1: is not what the docstrings say: run python -m checks.deviations"
    ]
