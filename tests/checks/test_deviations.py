from __future__ import annotations

import pytest

from checks import deviations

SOURCE = '''
    """A frontend.

    Deviates: in everything.
    """

    def recv(tensor):
        """Receive.

        Raises: RankError.
        Deviates: gives | back the rank,
            where none is expected.
        See: a page.
        """

    def send(tensor):
        """Send. It deviates: no."""

    class Work:
        """Handle.

        Deviates: has no result.

        More words.
        """

        def wait(self):
            """Wait.

            Deviates: returns True."""
    '''


def test_each_deviation_is_a_row(write_tree) -> None:
    page = deviations.render(write_tree({"shim/frontends/torch/distributed.py": SOURCE}))
    assert page.startswith("# Deviations\n")
    assert page.partition("## ")[2] == (
        "shim.frontends.torch.distributed\n\n"
        "| name | what differs |\n| --- | --- |\n"
        "| `distributed` | in everything. |\n"
        "| `recv` | gives \\| back the rank, where none is expected. |\n"
        "| `Work` | has no result. |\n"
        "| `Work.wait` | returns True. |\n"
    )


def test_a_page_that_says_the_same_passes(write_tree) -> None:
    root = write_tree({"shim/frontends/torch/distributed.py": SOURCE})
    write_tree({str(deviations.PAGE): deviations.render(root)})
    assert deviations.check(root) == []


@pytest.mark.parametrize("page", [None, "", "# Deviations\n"])
def test_a_page_that_says_something_else_is_found(write_tree, page: str | None) -> None:
    root = write_tree({"shim/frontends/torch/distributed.py": SOURCE})
    if page is not None:
        write_tree({str(deviations.PAGE): page})
    assert deviations.check(root) == [
        "docs/deviations.md:1: is not what the docstrings say: run python -m checks.deviations"
    ]
