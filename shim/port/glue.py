"""The module of glue: what a framework itself lacks and a port onto it needs, written beside the ported files.

A frontend lacks none of it, so only ports with ``onto="native"`` have such a module.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from functools import cache

from shim.port.apis import APIS
from shim.port.correspondences.table import Form, tensor_form_of
from shim.port.plan import FileResult, Plan, Problem

GLUE_MODULE = "shim_port_glue"
GLUE_FILE = f"{GLUE_MODULE}.py"
_IMPORT = re.compile(rf"\bfrom \.?{GLUE_MODULE} import (\w+)".encode())
_DEFINITION = re.compile(r"^def (\w+)", re.MULTILINE)
_HEAD = '"""What {framework} lacks, written by `shim port --to {api}`, which writes it anew: remove this line to keep changes of yours."""\n\n'
# By row: the APIs that lack it, the parameters with their roles and defaults as a form of tensors has them, the function's text.
FUNCTIONS = {
    "gather_object": (
        ("paddle_2", "paddle_3"),
        "obj:object, object_gather_list:objects=None, dst:root=0, group=None",
        '''
def gather_object(obj, object_gather_list=None, dst=0, group=None):
    """Gather the objects of a group's ranks into a list on rank *dst* of the world."""
    gathered = []
    dist.all_gather_object(gathered, obj, group)
    if dist.get_rank() == dst:
        object_gather_list[:] = gathered
''',
    ),
    "receive_objects": (
        ("paddle_2",),
        "object_list:objects, src:peer, group=None",
        '''
def recv_object_list(object_list, src, group=None):
    """Receive an object for each place of a list, from rank *src* of the world."""
    for place in range(len(object_list)):
        length = paddle.zeros([1], dtype="int64")
        dist.recv(length, src, group)
        content = paddle.zeros([length.item()], dtype="uint8")
        dist.recv(content, src, group)
        object_list[place] = pickle.loads(content.numpy().tobytes())
''',
    ),
    "send_objects": (
        ("paddle_2",),
        "object_list:objects, dst:peer=0, group=None",
        '''
def send_object_list(object_list, dst=0, group=None):
    """Send the objects of a list to rank *dst* of the world, which receives them by recv_object_list."""
    for each in object_list:
        content = numpy.frombuffer(pickle.dumps(each), dtype="uint8")
        dist.send(paddle.to_tensor([content.size], dtype="int64"), dst, group)
        dist.send(paddle.to_tensor(content), dst, group)
''',
    ),
}


@cache
def glue_form(row: str, api: str) -> Form | None:
    """Return the form of the function that stands for *row* on the framework of *api* itself; None where there is none."""
    apis, parameters, text = FUNCTIONS.get(row, ((), "", ""))
    return tensor_form_of(f"{GLUE_MODULE}.{_name(text)}({parameters})", api) if api in apis else None


def module_text(names: Sequence[str], api: str) -> str:
    """Return the module with the functions *names*, without its first lines."""
    framework = APIS[api].framework
    texts = sorted(text for _, _, text in FUNCTIONS.values() if _name(text) in names)
    body = "\n".join(texts)
    modules = [module for module in ("pickle", "numpy", framework) if f"{module}." in body]
    standard = [f"import {module}" for module in modules if module == "pickle"]
    others = [f"import {module}" for module in modules if module != "pickle"]
    imports = [*standard, *([""] if standard else []), *others, f"import {framework}.distributed as dist"]
    return "\n".join(imports) + "\n" + "".join(f"\n{text}" for text in texts)


def _name(text: str) -> str:
    return text.removeprefix("\ndef ").partition("(")[0]


def needs_glue(file: FileResult) -> bool:
    """Tell whether *file* imports, after its port, from the module of glue."""
    return file.is_changed and bool(_IMPORT.search(file.after))


def with_glue(files: Sequence[FileResult], plan: Plan) -> list[FileResult]:
    """Return *files* with the modules of glue that they need, one in each folder.

    A module that this command wrote grows. In a folder with another file of its name, the files that need it are not ported.
    """
    if plan.onto != "native":
        return list(files)
    head = _HEAD.format(framework=plan.target.partition("_")[0], api=plan.target.replace("_", "-"))
    found = [file for file in files if file.target.name != GLUE_FILE]
    for folder in dict.fromkeys(file.target.parent for file in files if needs_glue(file)):
        path = folder / GLUE_FILE
        try:
            before = path.read_bytes() if path.exists() or path.is_symlink() else None
        except OSError:
            before = b""
        if before is not None and not before.decode("utf-8", "replace").startswith(head):
            found = [_refused(file) if file.target.parent == folder and needs_glue(file) else file for file in found]
            continue
        users = [file for file in files if file.target.parent == folder and needs_glue(file)]
        names = {name.decode() for file in users for name in _IMPORT.findall(file.after)}
        names |= set(_DEFINITION.findall((before or b"").decode()))
        after = (head + module_text(sorted(names), plan.target)).encode()
        shown = users[0].path.parent / GLUE_FILE
        found.append(FileResult(shown, path, before or b"", after, is_new=before is None))
    return found


def _refused(file: FileResult) -> FileResult:
    why = f"it needs a module {GLUE_FILE} beside it, and the file of that name is not of this port"
    problem = Problem(why, "rename that file, and port again")
    return dataclasses.replace(file, after=file.before, places=0, findings=(), problem=problem)
