"""What the runner changes in an example that is written for a device which this machine has not, and says that it did.

Only the runner does so, never ``as_installed`` in a user's program: there a ``.cuda()`` that cannot work fails as ever.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["RULES", "Rule", "rewritten"]


class Rule(NamedTuple):
    """``pattern`` in the code of *framework*'s examples becomes ``replacement``; ``why`` is told with the result."""

    framework: str
    pattern: re.Pattern[str]
    replacement: str
    why: str


RULES = (
    Rule(
        "torch",
        re.compile(r"torch\.device\(f?([\"'])cuda(:\{?\w+\}?)?\1\)"),
        'torch.device("cpu")',
        "the GPU's device is the CPU here",
    ),
    Rule("torch", re.compile(r"\bdevice=rank\b"), 'device="cpu"', "the rank's GPU is the CPU here"),
    Rule(
        "torch",
        re.compile(r"\bnew_subgroups\(\)"),
        "new_subgroups(dist.get_world_size())",
        "the machine has as many ranks here as it would have GPUs",
    ),
    Rule("torch", re.compile(r"\btorch\.cuda\.set_device\([^)\n]*\)"), "None", "no GPU is chosen here"),
    Rule("torch", re.compile(r"\.cuda\([^)\n]*\)"), "", "tensors stay on the CPU here"),
    Rule(
        "paddle",
        re.compile(r"(set_device\()\s*f?([\"'])gpu[^\"']*\2"),
        r"\1'cpu'",
        "the GPU's place is the CPU's here",
    ),
    Rule(
        "mindspore",
        re.compile(r"(set_device\(\s*(?:device_target\s*=\s*)?)([\"'])(Ascend|GPU)\2"),
        r"\1'CPU'",
        "Ascend's device is the CPU here",
    ),
    Rule(
        "mindspore",
        re.compile(r"(device_target\s*=\s*)([\"'])(Ascend|GPU)\2"),
        r"\1'CPU'",
        "Ascend's device is the CPU here",
    ),
)


def rewritten(framework: str, source: str) -> tuple[str, list[str]]:
    """Return *source* as this machine can run it, and why it was changed."""
    reasons = []
    for rule in RULES:
        if rule.framework == framework:
            source, changes = rule.pattern.subn(rule.replacement, source)
            reasons += [rule.why] if changes else []
    return source, reasons
