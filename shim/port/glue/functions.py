"""The functions of the module of glue, as text: each is complete but for the imports."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from shim.port.apis import APIS
from shim.port.correspondences import Form, Parameter

__all__ = ["FUNCTIONS", "GLUE_MODULE", "glue_form", "module_text"]

GLUE_MODULE = "shim_port_glue"

# By row: the APIs that lack it, the parameters with their roles and defaults, the function's text.
FUNCTIONS = {
    "gather_object": (
        ("paddle_2", "paddle_3"),
        (
            ("obj", "object", None),
            ("object_gather_list", "objects", "None"),
            ("dst", "root", "0"),
            ("group", "group", "None"),
        ),
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
        (("object_list", "objects", None), ("src", "peer", None), ("group", "group", "None")),
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
        (("object_list", "objects", None), ("dst", "peer", "0"), ("group", "group", "None")),
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
    apis, parameters, text = FUNCTIONS.get(row, ((), (), ""))
    if api not in apis:
        return None
    name = f"{GLUE_MODULE}.{_name(text)}"
    return Form(api, name, tuple(Parameter(own, role, False, default) for own, role, default in parameters))


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
