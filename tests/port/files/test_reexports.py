"""Names of the API that a file has from other files of the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from shim.port.plan import Plan
from shim.port.run import port_paths

COMMON = "import torch.distributed as dist\nfrom torch.distributed import all_to_all_single as exchange, barrier\n"
CALL = "dist.all_to_all_single(out, x, [1, 2], [2, 1])\n"
PORTED_CALL = "dist.alltoall_single(out, x, out_split_sizes=[1, 2], in_split_sizes=[2, 1])\n"
IMPORT = "import shim.frontends.paddle_3.distributed as dist\n"
PLAN = Plan("torch", "paddle_3")


def _ported(folder: Path, files: dict[str, str], plan: Plan = PLAN) -> dict[str, str]:
    """Return what becomes of *files*, each below *folder*, and the rules that its entries name, after a line of dashes."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    result = port_paths([folder], plan, jobs=1)
    told = {str(file.path.relative_to(folder)): file for file in result.files}
    return {
        name: (told[name].after.decode() if name in told else text)
        + "".join(f"--{finding.entry.rule}\n" for finding in (told[name].findings if name in told else ()))
        for name, text in files.items()
    }


@pytest.mark.parametrize(
    ("common", "user", "statement"),
    [
        ("common.py", "main.py", "from common import dist\n"),
        ("src/pkg/common.py", "tests/main.py", "from pkg.common import dist\n"),
        ("pkg/common.py", "pkg/main.py", "from .common import dist\n"),
        ("pkg/common.py", "pkg/sub/main.py", "from ..common import dist\n"),
        ("pkg/__init__.py", "pkg/main.py", "from . import dist\n"),
        ("pkg/__init__.py", "main.py", "from pkg import (  # ours\n    dist,\n)\n"),
    ],
)
def test_a_module_that_another_file_imports(tmp_path: Path, common: str, user: str, statement: str) -> None:
    ported = _ported(tmp_path, {common: COMMON, user: statement + CALL})
    assert ported[user] == IMPORT + PORTED_CALL


def test_functions_and_what_stands_beside_them(tmp_path: Path) -> None:
    files = {
        "common.py": f"{COMMON}def f(): ...\n",
        "main.py": "from common import exchange, f\nexchange(out, x, [1], [1])\nf()\n",
    }
    assert _ported(tmp_path, files)["main.py"] == (
        "from common import f\nfrom shim.frontends.paddle_3.distributed import alltoall_single as exchange\n"
        "exchange(out, x, out_split_sizes=[1], in_split_sizes=[1])\nf()\n"
    )


def test_by_way_of_several_files(tmp_path: Path) -> None:
    files = {
        "pkg/a.py": "try:\n    import torch.distributed as dist\nexcept ImportError:\n    dist = None\n",
        "pkg/b.py": "from .a import dist as d\n",
        "pkg/__init__.py": "from .b import *\n",
        "main.py": "from pkg import d\nd.barrier(async_op=True)\n",
    }
    ported = _ported(tmp_path, files)
    assert ported["main.py"] == IMPORT.replace("dist\n", "d\n") + "d.barrier(async_op=True)\n--no-equivalent-argument\n"


@pytest.mark.parametrize("statement", ["import common\n", "from . import common\n"])
def test_a_module_below_another_file(tmp_path: Path, statement: str) -> None:
    ported = _ported(tmp_path, {"common.py": COMMON, "main.py": f"{statement}common.{CALL}"})
    assert ported["main.py"] == statement + IMPORT + PORTED_CALL


def test_a_star_is_reported(tmp_path: Path) -> None:
    use = f"from common import *\n{CALL}"
    assert _ported(tmp_path, {"common.py": COMMON, "main.py": use})["main.py"] == f"{use}--star-import\n"


@pytest.mark.parametrize(
    "common",
    [
        "from torch.distributed import barrier as dist\ndef dist(): ...\n",  # its own
        "from torch.distributed import barrier\ndist = barrier and 1\n",
        "def f():\n    import torch.distributed as dist\n",  # in a function alone
        "import torch.distributed as dist\nnot python 3\n",
        "from numpy import distributed as dist\n",
    ],
)
def test_other_names_stay(tmp_path: Path, common: str) -> None:
    main = f"from common import dist\n{CALL}"
    assert _ported(tmp_path, {"common.py": common, "main.py": main})["main.py"] == main


def test_another_file_of_the_same_name_is_another_module(tmp_path: Path) -> None:
    files = {"a/common.py": COMMON, "b/common.py": "dist = 1\n", "b/main.py": f"from .common import dist\n{CALL}"}
    assert _ported(tmp_path, files)["b/main.py"] == files["b/main.py"]


def test_imports_stay_where_the_framework_does(tmp_path: Path) -> None:
    files = {
        "common.py": "from paddle import distributed as dist\n",
        "main.py": "from common import dist\ndist.alltoall(a, b)\n",
    }
    ported = _ported(tmp_path, files, Plan("paddle_2", "paddle_3", onto="native"))
    assert ported["common.py"] == files["common.py"]
    assert ported["main.py"] == "from common import dist\ndist.alltoall(in_tensor_list=a, out_tensor_list=b)\n"
