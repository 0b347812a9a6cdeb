from __future__ import annotations

import pytest

from checks import frontend_docstrings

MODULE = "shim/frontends/torch/distributed/__init__.py"
PAGE = "\n\n    See: https://a.page\n    "


def found(write_tree, parameters: str, docstring: str) -> list[str]:
    source = f'__all__ = ["f"]\ndef f({parameters}):\n    """{docstring}"""\n    return 1\n'
    return [line.partition(".f ")[2] for line in frontend_docstrings.check(write_tree({MODULE: source}))]


@pytest.mark.parametrize("parameters", ["", "tensor", "tensor, *, src", "tensor, group=None, async_op=False"])
def test_what_tells_everything_passes(write_tree, parameters: str) -> None:
    assert found(write_tree, parameters, f"Copy the shape of the world's *src*'s *tensor*.{PAGE}") == []


@pytest.mark.parametrize("parameters", ["tensor, dst", "tensor, *dst", "tensor, *, dst=0", "tensor, **dst"])
def test_a_parameter_that_is_not_named_is_found(write_tree, parameters: str) -> None:
    told = found(write_tree, parameters, f"Copy *tensor* to the world's dst, of its shape, not to dsts.{PAGE}")
    assert told == ["does not say what dst is for"]


@pytest.mark.parametrize("docstring", ["Do.", "Do.\n\n    See: the page\n    ", "Do. See: https://a.page"])
def test_a_page_that_is_missing_is_found(write_tree, docstring: str) -> None:
    assert found(write_tree, "", docstring) == ["does not say which page it follows: See: https://..."]


@pytest.mark.parametrize(
    ("parameters", "unsaid", "said"),
    [
        ("tensor", "Copy *tensor*.", "Copy *tensor* to the same shape."),
        ("output, input", "Copy *input* to *output*.", "Copy *input* to *output*, which has as many elements."),
        ("out_split_sizes", "Cut by *out_split_sizes*.", "Cut into *out_split_sizes* rows."),
        ("timeout", "Wait *timeout*.", "Wait *timeout*, a timedelta."),
        ("timeout_s", "Wait *timeout_s*.", "Wait *timeout_s* seconds."),
        ("src", "Receive from *src*.", "Receive from the world's rank *src*."),
        ("dst", "Send to *dst*.", "Send to *group*'s rank *dst*."),
    ],
)
def test_a_shape_a_unit_or_a_kind_of_rank_that_is_not_told_is_found(
    write_tree, parameters: str, unsaid: str, said: str
) -> None:
    told = found(write_tree, parameters, unsaid + PAGE)
    assert [line.startswith("does not say ") for line in told] == [True]
    assert found(write_tree, parameters, said + PAGE) == []


def test_what_another_function_does_is_told_there(write_tree) -> None:
    assert found(write_tree, "tensor", f"Do what ``g`` does with *tensor*.{PAGE}") == []
