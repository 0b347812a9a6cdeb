"""The packages, at one version each, and where they are ported to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Package:
    """``source`` is the API that it uses, ``parts`` are the folders and files to take of it: all where there are none."""

    name: str
    version: str
    source: str
    targets: tuple[str, ...]
    parts: tuple[str, ...] = ()


OF_TORCH = ("paddle_3", "mindspore")

PACKAGES = (
    Package("torchmetrics", "1.9.0", "torch", OF_TORCH),
    Package("accelerate", "1.15.0", "torch", OF_TORCH, ("accelerate/utils/operations.py", "accelerate/state.py")),
    Package(
        "megatron-core",
        "0.16.1",
        "torch",
        OF_TORCH,
        ("megatron/core/parallel_state.py", "megatron/core/tensor_parallel", "megatron/core/pipeline_parallel"),
    ),
    Package("ring-flash-attn", "0.1.8", "torch", OF_TORCH),
    Package("ring-attention-pytorch", "0.5.20", "torch", OF_TORCH),
    Package("mmengine", "0.10.7", "torch", OF_TORCH),
    Package("open-clip-torch", "3.3.0", "torch", OF_TORCH),
    Package("timm", "1.0.31", "torch", OF_TORCH),
    Package("yolox", "0.3.0", "torch", OF_TORCH),
    Package("fvcore", "0.1.5.post20221221", "torch", OF_TORCH),
    Package("lightning-fabric", "2.6.6", "torch", OF_TORCH),
    Package(
        "paddlenlp",
        "2.8.1",
        "paddle_2",
        ("paddle_3", "torch"),
        ("paddlenlp/utils", "paddlenlp/trainer/utils", "paddlenlp/peft"),
    ),
    Package(
        "paddleformers", "1.2.0", "paddle_3", ("torch", "mindspore"), ("paddleformers/nn/moe", "paddleformers/utils")
    ),
    Package(
        "mindone",
        "0.5.0",
        "mindspore",
        ("torch", "paddle_3"),
        ("mindone/models/modules", "mindone/trainers", "mindone/data", "mindone/utils"),
    ),
    Package("mindnlp", "0.5.1", "mindspore", ("torch", "paddle_3"), ("mindnlp",)),
)
