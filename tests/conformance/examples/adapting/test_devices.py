"""What the runner changes for a machine without accelerators, and what it leaves alone."""

from __future__ import annotations

import pytest

from shim.conformance.examples.adapting import RULES, rewritten

CHANGED = [
    ("torch", 'device = torch.device(f"cuda:{rank}")', 'device = torch.device("cpu")'),
    ("torch", "torch.device('cuda:0')", 'torch.device("cpu")'),
    ("torch", "torch.ones(1, device=rank) * rank", 'torch.ones(1, device="cpu") * rank'),
    ("torch", "torch.cuda.set_device(rank)", "None"),
    ("torch", "x = torch.ones(2).cuda(rank)", "x = torch.ones(2)"),
    ("torch", "mine, all = dist.new_subgroups()", "mine, all = dist.new_subgroups(dist.get_world_size())"),
    ("paddle", "paddle.set_device(f'gpu:{env.dev_id}')", "paddle.set_device('cpu')"),
    ("mindspore", 'set_device(device_target="Ascend")', "set_device(device_target='CPU')"),
    ("mindspore", 'set_device("GPU")', "set_device('CPU')"),
    ("mindspore", "context(mode=1, device_target='Ascend')", "context(mode=1, device_target='CPU')"),
]
KEPT = [
    ("torch", "dist.new_subgroups(2)"),
    ("torch", "dist.new_subgroups_by_enumeration([[0], [1]])"),
    ("torch", 'torch.device("cpu")'),
    ("torch", "tensor.cpu()"),
    ("torch", "paddle.set_device('gpu:0')"),
    ("paddle", "paddle.set_device('cpu')"),
    ("mindspore", 'print("Ascend")'),
]


@pytest.mark.parametrize(("framework", "source", "expected"), CHANGED)
def test_what_is_changed_and_told(framework: str, source: str, expected: str) -> None:
    changed, reasons = rewritten(framework, source)
    assert changed == expected
    assert len(reasons) == 1


@pytest.mark.parametrize(("framework", "source"), KEPT)
def test_what_is_left_alone(framework: str, source: str) -> None:
    assert rewritten(framework, source) == (source, [])


def test_every_rule_is_tested() -> None:
    used = {
        rule
        for rule in RULES
        for framework, source, _ in CHANGED
        if (rule.framework == framework and rule.pattern.search(source))
    }
    assert used == set(RULES)
