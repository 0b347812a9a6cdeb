"""The program's own modules get views whoever loads them; installed ones never do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from preloaded_programs import run_python

SHOWN = "print(f'{__name__}:', all_reduce.__module__.partition('.')[0])\n"
IMPORT = "from torch.distributed import all_reduce\n"
INDENTED = "".join(f"    {line}\n" for line in (IMPORT + SHOWN).splitlines())
TEST = f"""
import multiprocessing, warnings
import pytest
{IMPORT}
skipped = pytest.importorskip("torch.distributed")
print("skipped:", skipped.all_reduce.__module__.partition(".")[0])

def child():
{INDENTED}

def test_it(from_plugin):
    {SHOWN.strip()}
    assert pytest.approx(1.0) == 1.0
    process = multiprocessing.get_context("spawn").Process(target=child)
    process.start()
    process.join()
"""
PLUGIN = f"import pytest\n{IMPORT}{SHOWN}\n@pytest.fixture\ndef from_plugin(): ...\n"
BY_PATH = f"""
import importlib.util, runpy, torch
spec = importlib.util.spec_from_file_location("loaded", "loaded.py")
spec.loader.exec_module(importlib.util.module_from_spec(spec))
runpy.run_path("loaded.py", run_name="run")
exec({IMPORT + SHOWN!r}, {{"__name__": "text"}})
import code
code.InteractiveInterpreter({{"__name__": "typed"}}).runcode(compile({IMPORT + SHOWN!r}, "<cell 1>", "exec"))
import builtins, ctypes, _thread, time
builtins.added = "seen"
# C code's import, in a thread of its own that has no Python frame
by_c = ctypes.pythonapi.PyImport_ImportModule
by_c.restype = ctypes.c_void_p
_thread.start_new_thread(by_c, (b"torch.distributed",))
time.sleep(0.2)
import beside

import sys
sys.path.append("../elsewhere")  # which is not the program's
import library
library.execute({IMPORT + SHOWN!r}, "executed by a library")
library.execute("class Inner:\\n" + {INDENTED!r}, "in a class")
library.execute("exec(inner, {{'__name__': 'text in its text'}})", "", inner={IMPORT + SHOWN!r})
library.interpret({IMPORT + SHOWN!r}, "through Python")
made = library.execute("def function():\\n" + {INDENTED!r}, "a function's")
made["function"]()

@torch.compile(backend="eager")
def compiled(tensor):
    from torch.distributed import all_reduce as reduce
    return tensor + 1, reduce
print("compiled:", compiled(torch.ones(1))[1].__module__.partition(".")[0])
"""
LIBRARY = """
import code

def execute(text, name, **names):
    names["__name__"] = name
    exec(text, names)
    return names

def interpret(text, name):
    code.InteractiveInterpreter({"__name__": name}).runcode(compile(text, "<text>", "exec"))
"""


def run(folder: Path, *program: str, **variables: str) -> list[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "COLUMNS": "200"} | variables
    done = run_python("-m", "shim.substitution", *program, cwd=folder, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Exception ignored" not in done.stderr, done.stderr
    return done.stdout.splitlines()


def test_what_pytest_loads_in_the_working_folder_and_elsewhere(tmp_path: Path) -> None:
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    for folder in (work, elsewhere):
        folder.mkdir()
    (work / "conftest.py").write_text(f"pytest_plugins = ['plugin']\n{IMPORT}{SHOWN}")
    (work / "plugin.py").write_text(PLUGIN)
    (work / "test_here.py").write_text(f"{IMPORT}def test_it(from_plugin): {SHOWN}")
    (elsewhere / "test_there.py").write_text(TEST)
    files = ["test_here.py", f"{elsewhere}/test_there.py::test_it"]
    shown = run(work, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "--rootdir", str(work), *files)
    said = [line.lstrip(".") for line in shown if line.endswith((": shim", ": torch"))]
    assert said[:4] == ["conftest: shim", "plugin: shim", "skipped: shim", "test_here: shim"]
    in_the_child = ["skipped: shim", "test_there: shim"]
    assert said[4:] == ["test_there: shim", *in_the_child]


def test_what_is_loaded_by_its_path_text_without_a_file_and_compiled_code(tmp_path: Path) -> None:
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    for folder in (work, elsewhere):
        folder.mkdir()
    (work / "program.py").write_text(BY_PATH)
    (work / "loaded.py").write_text(IMPORT + SHOWN)
    (work / "beside.py").write_text("print('builtins:', added)\n")
    (elsewhere / "library.py").write_text(LIBRARY)
    shown = run(work, "program.py")
    assert shown[:5] == ["loaded: shim", "run: shim", "text: shim", "typed: shim", "builtins: seen"]
    texts = ("executed by a library", "in a class", "text in its text", "through Python")
    assert shown[5:9] == [f"{text}: torch" for text in texts]
    assert shown[9:] == ["a function's: shim", "compiled: shim"]


def test_a_warning_of_an_imported_module_points_at_the_import(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import warnings\nwarnings.simplefilter('always')\n\nimport beside\n")
    (tmp_path / "beside.py").write_text("import warnings\nwarnings.warn('old', stacklevel=2)\n")
    command = [sys.executable, "-m", "shim.substitution", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True)
    assert "program.py:4: UserWarning: old" in done.stderr


# Who imports multiprocessing gives the program's module a second name, and the order of the modules' names is that in which Python frees them.
FREED = """
import os
import helper
loader = helper.Loader()
def keep(): return loader
import multiprocessing.util
os.kept = __import__("sys").modules["__main__"]
"""
HELPER = """
import os
class Loader:
    def __del__(self): print("closed", os.path.join("a", "b"))
"""


def test_what_a_program_holds_is_freed_before_the_modules_it_needs(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(FREED)
    (tmp_path / "helper.py").write_text(HELPER)
    command = [sys.executable, "-m", "shim.substitution", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True)
    assert (done.stdout, done.stderr) == ("closed a/b\n", "")
    plain = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert plain.stdout == "closed a/b\n"
