"""``%%ranks`` in the kernel of a notebook: what cells show, what they keep, and how they fail, are interrupted and end."""

from __future__ import annotations

import copy
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

ROOT = Path(__file__).resolve().parents[2]
IMPORTS = """
import os, signal, time
import numpy as np
import shim.frontends.torch.distributed as dist
dist.init_process_group()
"""


class Notebook:
    """A notebook with a kernel, to which each run adds a cell."""

    def __init__(self, client: NotebookClient) -> None:
        self.client = client

    def run(
        self, source: str, meanwhile: Callable[[nbformat.NotebookNode], None] | None = None
    ) -> nbformat.NotebookNode:
        """Run a cell, and return it with its outputs; *meanwhile* is called with it in another thread."""
        cell = nbformat.v4.new_code_cell(source)
        self.client.nb.cells.append(cell)
        thread = threading.Thread(target=meanwhile or (lambda cell: None), args=(cell,))
        thread.start()
        try:
            self.client.execute_cell(cell, len(self.client.nb.cells) - 1)
        except CellExecutionError as error:
            cell.failure = error
        finally:
            thread.join()
        return cell

    def start(self, size: int) -> set[int]:
        """Start *size* new ranks that have imported what the tests need and made the world, and return their processes."""
        self.run("%ranks stop")
        assert shown(self.run(f"%%ranks {size}\n{IMPORTS}")) == ""
        pids = {int(pid) for pid in re.findall(r"\] (\d+)", shown(self.run("%%ranks\nos.getpid()")))}
        assert len(pids) == size
        return pids

    def signal(self, number: int, cell: nbformat.NotebookNode) -> None:
        """Send the kernel a signal, as Jupyter does, once *cell* shows what two ranks have printed."""
        until = time.monotonic() + 30
        while not re.fullmatch(r"\[0\] .*\n\[1\] .*", shown(cell)) and time.monotonic() < until:
            time.sleep(0.05)
        cell.shown_before = shown(cell)
        os.killpg(self.client.km.provisioner.pgid, number)


@contextmanager
def kernel(folder: Path) -> Iterator[Notebook]:
    client = NotebookClient(nbformat.v4.new_notebook(), timeout=120, kernel_name="python3")
    with client.setup_kernel(env={**os.environ, "IPYTHONDIR": str(folder)}):
        notebook = Notebook(client)
        assert "failure" not in notebook.run("%load_ext shim.notebook")
        yield notebook


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    with kernel(tmp_path_factory.mktemp("ipython")) as notebook:
        yield notebook


def shown(cell: nbformat.NotebookNode, kind: str = "text/plain") -> str:
    """Return what a cell shows besides its error."""
    parts = [
        output.text if output.output_type == "stream" else output.get("data", {}).get(kind, "")
        for output in cell.outputs
    ]
    return "".join(parts)


def error_of(cell: nbformat.NotebookNode) -> tuple[str, str]:
    """Return the class of the one error that a cell shows, and its text."""
    (error,) = [output for output in cell.outputs if output.output_type == "error"]
    assert "failure" in cell  # and so a run of the whole notebook would stop here
    return error.ename, "\n".join(error.traceback)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_ranks_keep_variables_functions_and_the_group_between_cells(notebook: Notebook) -> None:
    pids = notebook.start(3)
    assert (
        shown(notebook.run("%%ranks\ndef twice(x):\n    return 2 * x\nmine = np.full(2, dist.get_rank() + 1.0)")) == ""
    )
    assert shown(notebook.run("%%ranks 3\ndist.all_reduce(mine)\ntwice(mine)")) == "[0-2] array([12., 12.])"
    objects = notebook.run("%%ranks\nfound = [None] * 3\ndist.all_gather_object(found, twice)\nfound == [twice] * 3")
    assert shown(objects) == "[0-2] True"
    assert shown(notebook.run(f"%%ranks\nos.getpid() in {pids}")) == "[0-2] True"


def test_output_stands_side_by_side_and_the_same_once(notebook: Notebook) -> None:
    notebook.start(3)
    cell = notebook.run("""%%ranks
import sys
print("<b>", end="\\r"); print("<i>", max(1, dist.get_rank()))
print("\\x1b[31merror\\x1b[0m", file=sys.stderr)
dist.get_rank() > 1;""")
    assert shown(cell) == "[0-1] <i> 1\n[0-1] error\n[2] <i> 2\n[2] error"
    table = shown(cell, "text/html")
    assert re.findall(r"<th[^>]*>(.*?)</th>", table) == ["ranks 0-1", "rank 2"]
    assert re.findall(r"<pre>(.*?)</pre>", table, re.DOTALL) == ["&lt;i&gt; 1\nerror", "&lt;i&gt; 2\nerror"]


def test_long_output_is_cut(notebook: Notebook) -> None:
    notebook.start(1)
    text = shown(notebook.run("%%ranks\nprint('x' * 50_000)\n'the end'"))
    assert len(text) < 21_000
    assert text.startswith("[0] (30011 characters before this are not shown)")
    assert text.endswith("x\n[0] 'the end'")
    _, error = error_of(notebook.run("%%ranks\nraise ValueError('z' * 50_000)"))
    assert len(error) < 21_000
    assert "zzz... (" in error


def test_the_error_of_all_ranks_is_shown_once(notebook: Notebook) -> None:
    notebook.start(2)
    kind, text = error_of(notebook.run("%%ranks\nmine = np.ones(3)\ndist.all_reduce(mine[dist.get_rank():])"))
    assert kind == "RanksError"
    assert text.startswith("RanksError: ranks 0-1: MismatchError: torch.distributed.all_reduce: the ranks")
    assert text.count("Traceback") == 1
    assert "dist.all_reduce(mine[dist.get_rank():])" in text
    assert "shim/" not in text  # no frames of ours
    assert shown(notebook.run("%%ranks\ndist.all_reduce(mine); mine")) == "[0-1] array([2., 2., 2.])"


def test_ranks_that_have_finished_long_before_others_are_told_of(notebook: Notebook) -> None:
    notebook.start(2)
    notebook.run("import shim.notebook.magic as magic\nbefore, magic._PATIENCE = magic._PATIENCE, 0.5")
    cell = notebook.run("%%ranks\nif dist.get_rank() == 0:\n    time.sleep(2)")
    notebook.run("magic._PATIENCE = before")
    assert shown(cell).count("rank 1: finished the cell; not yet: rank 0.") == 1
    assert "finished" not in shown(notebook.run("%%ranks\nif dist.get_rank() == 0:\n    time.sleep(2)"))


def test_ranks_that_wait_for_a_failed_one_are_interrupted(notebook: Notebook) -> None:
    pids = notebook.start(3)
    notebook.run(
        "%%ranks\n\ndef share():\n    if rank == 1:\n        raise ValueError('too hot')\n    dist.all_reduce(mine)"
    )
    began = time.monotonic()
    _, text = error_of(notebook.run("%%ranks\nrank, mine = dist.get_rank(), np.ones(1)\nif rank:\n    share()"))
    assert time.monotonic() - began < 30
    first, second, third, remark = re.split(r"\n\n", text)
    assert first.startswith("RanksError: rank 1: ValueError: too hot\nTraceback")
    assert re.search(r"line 5, in share\n    raise ValueError\(.too hot.\)\nValueError: too hot$", first)
    assert second.startswith("rank 2: interrupted, 2 s after another rank had failed\nTraceback")
    assert third == "rank 0: finished the cell"
    assert remark.startswith("Group 'world' can no longer be used: ")
    again = notebook.run(
        "%%ranks\ndist.destroy_process_group()\ndist.init_process_group()\ndist.all_reduce(mine)\nmine"
    )
    assert shown(again) == "[0-2] array([3.])"
    assert all(map(is_running, pids))


def test_an_interrupt_ends_the_cell_and_keeps_the_ranks(notebook: Notebook) -> None:
    pids = notebook.start(2)
    source = "%%ranks\nkept = 5\nprint('waiting')\ntime.sleep(100)"
    cell = notebook.run(source, lambda cell: notebook.signal(signal.SIGINT, cell))
    assert cell.shown_before == "[0] waiting\n[1] waiting"
    assert shown(cell) == "[0-1] waiting"
    kind, text = error_of(cell)
    assert (kind, text.count("Traceback")) == ("KeyboardInterrupt", 1)
    assert text.startswith("KeyboardInterrupt: ranks 0-1: interrupted\nTraceback")
    assert "time.sleep(100)" in text
    assert shown(notebook.run("%%ranks\nkept")) == "[0-1] 5"
    assert all(map(is_running, pids))


def test_a_timeout_ends_the_cell(notebook: Notebook) -> None:
    notebook.start(2)
    _, text = error_of(notebook.run("%%ranks --timeout 0.5\nif dist.get_rank():\n    time.sleep(100)"))
    assert text.startswith("RanksError: rank 1: interrupted, not finished after 0.5 s\n")


def test_a_rank_that_dies_ends_all(notebook: Notebook) -> None:
    pids = notebook.start(2)
    _, text = error_of(notebook.run("%%ranks\nif dist.get_rank():\n    os.kill(os.getpid(), signal.SIGKILL)"))
    assert text.startswith("RanksError: rank 1: died: killed by SIGKILL\n\nrank 0: finished the cell\n")
    assert text.endswith("All ranks were ended, all variables are gone; the next cell starts new ones.")
    assert not any(map(is_running, pids))
    assert shown(notebook.run("%%ranks\n'pids' in globals()")) == "[0-1] False"


def test_a_cell_cannot_ask_for_input(notebook: Notebook) -> None:
    notebook.start(1)
    _, text = error_of(notebook.run("%%ranks\ninput('name? ')"))
    assert "rank 0: UnsupportedError: input: a rank of a notebook has nobody to ask" in text


def test_another_number_ends_the_ranks_and_says_so(notebook: Notebook) -> None:
    pids = notebook.start(2)
    assert shown(notebook.run("%ranks")) == "ranks 0-1: running\n"
    cell = notebook.run("%%ranks 1\nimport os\nos.environ['WORLD_SIZE'], os.environ['MASTER_ADDR']")
    assert shown(cell) == "ranks 0-1: ended, all variables are gone; starting rank 0\n[0] ('1', '127.0.0.1')"
    assert not any(map(is_running, pids))
    assert shown(notebook.run("%ranks restart")) == "rank 0: restarted, all variables are gone\n"
    assert shown(notebook.run("%ranks stop")) == "rank 0: stopped, all variables are gone\n"
    assert shown(notebook.run("%ranks")) == "no ranks run; %%ranks N above a cell starts them\n"


@pytest.mark.parametrize("is_killed", [False, True], ids=["shut down", "killed in a cell"])
def test_no_rank_is_left_when_the_kernel_ends(tmp_path: Path, is_killed: bool) -> None:
    with kernel(tmp_path) as ended:
        pids = ended.start(2)
        assert all(map(is_running, pids))
        ended.run(f"%%ranks\nimport atexit\natexit.register(open, '{tmp_path}/%d' % dist.get_rank(), 'w')")
        if is_killed:
            with pytest.raises(DeadKernelError):
                ended.run("%%ranks\nprint('waiting')\ntime.sleep(100)", lambda cell: ended.signal(signal.SIGKILL, cell))
    until = time.monotonic() + 10
    while any(map(is_running, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(is_running, pids))
    assert [(tmp_path / str(rank)).exists() for rank in range(2)] == [not is_killed] * 2


def test_the_example_shows_what_its_file_and_the_page_hold(tmp_path: Path) -> None:
    example = nbformat.read(ROOT / "examples" / "notebook.ipynb", as_version=4)
    page = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    recorded = [copy.deepcopy(cell.get("outputs", [])) for cell in example.cells]
    NotebookClient(example, timeout=120, record_timing=False).execute(env={**os.environ, "IPYTHONDIR": str(tmp_path)})
    assert [cell.get("outputs", []) for cell in example.cells] == recorded
    blocks = re.findall(r"^```(python)?\n(.*?)\n```$", page, re.DOTALL | re.MULTILINE)
    assert {text for language, text in blocks if language} <= {cell.source for cell in example.cells}
    texts = [
        "\n".join(one.get("traceback") or [one.data["text/plain"]]) for outputs in recorded[:10] for one in outputs
    ]
    assert [text for language, text in blocks if not language] == [text.rstrip("\n") for text in texts]
