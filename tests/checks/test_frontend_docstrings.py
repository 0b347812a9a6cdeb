from __future__ import annotations

import pytest

from checks import frontend_docstrings

MODULE = "shim/frontends/torch/distributed/__init__.py"


def found(write_tree, parameters: str, docstring: str) -> list[str]:
    source = f'__all__ = ["f"]\ndef f({parameters}):\n    """{docstring}"""\n    return 1\n'
    return [line.partition(".f ")[2] for line in frontend_docstrings.check(write_tree({MODULE: source}))]


@pytest.mark.parametrize("parameters", ["", "tensor", "tensor, *, src", "tensor, group=None, async_op=False"])
def test_what_tells_everything_passes(write_tree, parameters: str) -> None:
    assert found(write_tree, parameters, "Copy *src*'s *tensor*.\n\n    See: https://a.page\n    ") == []


@pytest.mark.parametrize("parameters", ["tensor, dst", "tensor, *dst", "tensor, *, dst=0", "tensor, **dst"])
def test_a_parameter_that_is_not_named_is_found(write_tree, parameters: str) -> None:
    told = found(write_tree, parameters, "Copy *tensor* to the dst, not to dsts.\n\n    See: https://a.page\n    ")
    assert told == ["does not say what dst is for"]


@pytest.mark.parametrize("docstring", ["Do.", "Do.\n\n    See: the page\n    ", "Do. See: https://a.page"])
def test_a_page_that_is_missing_is_found(write_tree, docstring: str) -> None:
    assert found(write_tree, "", docstring) == ["does not say which page it follows: See: https://..."]
