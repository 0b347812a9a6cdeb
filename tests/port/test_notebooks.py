"""Notebooks: their cells are one module, and their JSON keeps its layout."""

from __future__ import annotations

import json
from typing import Any

import pytest
from port_functions import IMPORT, PORTED, port_imports

from shim.port.notebooks.notebook import NotANotebook
from shim.port.notebooks.porting import port_notebook
from shim.port.plan import Plan

PLAN = Plan("torch", "mindspore")


def cell(source: Any, kind: str = "code") -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {}, "source": source}


def notebook(*cells: Any, **settings: Any) -> str:
    content = {"cells": list(cells), "metadata": {"z": 1.50, "a": None}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, **({"indent": 1} | settings)) + "\n"


def sources(text: str) -> list[str]:
    return ["".join(each["source"]) for each in json.loads(text)["cells"]]


@pytest.mark.parametrize(
    "settings", [{}, {"indent": 2}, {"indent": None}, {"sort_keys": True}, {"ensure_ascii": False}, {"indent": "\t"}]
)
@pytest.mark.parametrize("source", [[IMPORT + "\n", "x = 'é\\n'\n", "x"], f"{IMPORT}\nx = 'é'", [IMPORT]])
def test_all_but_the_changed_line_keeps_its_bytes(settings: dict[str, Any], source: Any) -> None:
    text = notebook(cell(["# é\n"], "markdown"), cell(source), cell("y = 2"), **settings)
    after, places, findings = port_notebook(text, PLAN, port_imports)
    assert after == text.replace(IMPORT, PORTED)
    assert (places, findings) == (1, [])


def test_a_line_that_stays_keeps_its_spelling() -> None:
    line = r'"x = \u0027\/\u00E9\u0027 # é\n"'
    text = f'{{"cells": [{{"cell_type": "code", "source": [{line},"{IMPORT}\\n",  {line}]}}]}}'
    after, _, _ = port_notebook(text, PLAN, port_imports)
    assert after == text.replace(IMPORT, PORTED)


def test_a_notebook_without_anything_to_port_stays() -> None:
    text = "\n" + notebook(cell("x = 1"), cell([]), cell(""), cell("a", "raw"), cell(["%ls\n", "?x"])) + "\n"
    assert port_notebook(text, PLAN, port_imports) == (text, 0, [])


def test_names_of_one_cell_are_known_in_the_next() -> None:
    seen = []

    def port(source: str, plan: Plan) -> Any:
        seen.append(source)
        return port_imports(source, plan)

    port_notebook(
        notebook(cell(IMPORT), cell("text", "markdown"), cell(["def f():\n", "    dist.barrier()"])), PLAN, port
    )
    [module] = seen
    assert module.index(IMPORT) < module.index("dist.barrier()")


def test_a_new_line_at_the_top_goes_into_the_first_cell() -> None:
    def port(source: str, plan: Plan) -> Any:
        done = port_imports(source, plan)
        return type(done)("import glue\n" + done.text, done.places, done.entries)

    after, _, _ = port_notebook(notebook(cell([IMPORT, "\n", "x\n"]), cell("y")), PLAN, port)
    assert sources(after) == [f"import glue\n{PORTED}\nx\n", "y"]


MAGICS = [
    f"%matplotlib inline\n{IMPORT}\n%time f(x)\n",
    f"{IMPORT}\n!pip install torch\nfiles = !ls\nx = %timeit -o f()\n",
    f"{IMPORT}\nif x:\n    %time f()\n    y = 1\n",
    f"{IMPORT}\n!echo a \\\n    b \\\n  c\nx = 1",
    f"{IMPORT}\nx?\n?x\nf??",
    f"%%time\n{IMPORT}\nx = 1\n",
    f"%%ranks 4\n{IMPORT}\nx = 1\n",
    f"{IMPORT}\ns = '''\n%not a magic\n'''\n",
    f"{IMPORT}\ns = (a\n % b)\n",
    f"{IMPORT}\nawait f()\n",
]


@pytest.mark.parametrize("source", MAGICS)
def test_magics_stay_as_they_are(source: str) -> None:
    after, places, findings = port_notebook(notebook(cell(source)), PLAN, port_imports)
    assert (sources(after), places, findings) == ([source.replace(IMPORT, PORTED)], 1, [])


@pytest.mark.parametrize("magic", ["%%html", "%%javascript", "%%writefile notes.txt", "%%latex", "%%bash"])
def test_cells_that_are_no_python_stay(magic: str) -> None:
    source = f"{magic}\n{IMPORT} as (\n"
    after, places, findings = port_notebook(notebook(cell(source), cell(IMPORT)), PLAN, port_imports)
    assert (sources(after), places, findings) == ([source, PORTED], 1, [])


def test_a_cell_that_writes_a_python_file_is_ported_by_itself() -> None:
    source = f"%%writefile train.py\n{IMPORT}\ndist.monitored_barrier()\n"
    after, places, [finding] = port_notebook(notebook(cell("x = 1"), cell(source)), PLAN, port_imports)
    assert (sources(after), places) == (["x = 1", source.replace(IMPORT, PORTED)], 1)
    assert (finding.cell, finding.entry.line) == (2, 3)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("!torchrun --nproc_per_node 2 a.py", "!shim run -n 2 a.py"),
        ("x = 1\n!torchrun --nproc_per_node=2 \\\n  a.py \\\n  b\n", "x = 1\n!shim run -n 2 \\\n  a.py \\\n  b\n"),
        ("out = !torchrun --nproc_per_node 2 a.py", "out = !shim run -n 2 a.py"),
        ("%%bash\ntorchrun --nproc_per_node 2 a.py\n", "%%bash\nshim run -n 2 a.py\n"),
        ("run(['torchrun', '--nproc_per_node=2', 'a.py'])", "run(['shim', 'run', '-n', '2', 'a.py'])"),
    ],
)
def test_launch_lines_in_cells_are_ported(source: str, expected: str) -> None:
    after, places, findings = port_notebook(notebook(cell(source)), PLAN, port_imports)
    assert (sources(after), places, findings) == ([expected], 1, [])


def test_entries_name_the_cell_and_its_line_and_the_line_of_the_file() -> None:
    text = notebook(
        cell("text", "markdown"),
        cell(
            [
                IMPORT + "\n",
                "!torchrun --nproc_per_node=2 \\\n",
                " --nnodes=1 \\\n",
                " a.py\n",
                "dist.monitored_barrier()",
            ]
        ),
        cell(["x = 1\n", "dist.monitored_barrier()"]),
        cell("y = 1\ndist.monitored_barrier()"),
        cell("!torchrun --nnodes=2 a.py"),
    )
    _, _, findings = port_notebook(text, PLAN, port_imports)
    assert [(each.cell, each.entry.line, each.entry.rule) for each in findings] == [
        (2, 5, "no-equivalent"), (3, 2, "no-equivalent"), (4, 2, "no-equivalent"), (5, 1, "launch-nodes")
    ]  # fmt: skip
    lines = text.split("\n")
    assert all("monitored" in lines[each.file_line - 1] for each in findings[:3])
    assert "torchrun --nnodes=2" in lines[findings[3].file_line - 1]


@pytest.mark.parametrize(
    "source",
    ["print 'a'; dist.barrier()\n", "%time x\ndist.barrier(\n", "%%writefile a.py\nprint 'torch.distributed', torch\n"],
)
def test_a_cell_that_is_no_python_is_told(source: str) -> None:
    text = notebook(cell(source), cell(IMPORT))
    after, _, [finding] = port_notebook(text, PLAN, port_imports)
    assert sources(after) == [source, PORTED]
    assert (finding.cell, finding.entry.kind, finding.entry.rule) == (1, "left", "cell-not-python")


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", '{"cells": 1}', '{"worksheets": []}', '{"cells": [}', '{"cells": []} x', '{"a" 1}', '{"a": nil}', '["a" "b"]',
        '{"cells": [{"cell_type": "code", "source": [1]}]}', '{"cells": [{"cell_type": "code", "source": null}]}', "[" * 100_000, '{"a": "\n"}',
        '{"cells": [],}', "[1,]", '"\\ud800', "\x00",
    ],
)  # fmt: skip
def test_what_is_no_notebook_is_told_with_advice(text: str) -> None:
    with pytest.raises(NotANotebook) as raised:
        port_notebook(text, PLAN, port_imports)
    assert raised.value.advice
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("lost", ["# shim port: cell 2\n", "pass  # shim port keeps line 0"])
def test_a_notebook_whose_cells_cannot_be_told_apart_stays(lost: str) -> None:
    def port(source: str, plan: Plan) -> Any:
        done = port_imports(source, plan)
        return type(done)(done.text.replace(lost, ""), done.places, done.entries)

    with pytest.raises(NotANotebook, match="told apart"):
        port_notebook(notebook(cell(IMPORT), cell("%time x\ny = 1")), PLAN, port)
