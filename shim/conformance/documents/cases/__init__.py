"""The documents, each with its cases."""

from __future__ import annotations

from shim.conformance.documents.case import Case, Document
from shim.conformance.documents.cases import (
    mindspore_all_gather,
    mindspore_all_gather_into_tensor,
    paddle_alltoall_single,
    torch_all_gather_into_tensor,
    torch_all_to_all,
)

DOCUMENTS: tuple[Document, ...] = (
    torch_all_to_all.DOCUMENT,
    torch_all_gather_into_tensor.DOCUMENT,
    paddle_alltoall_single.DOCUMENT,
    mindspore_all_gather_into_tensor.DOCUMENT,
    mindspore_all_gather.DOCUMENT,
)


def case_named(document: str, case: str) -> Case:
    """Return the case called *case* of the document called *document*."""
    return next(each for page in DOCUMENTS if page.name == document for each in page.cases if each.name == case)
