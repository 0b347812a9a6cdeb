"""Programs that train through a library's trainer."""

from __future__ import annotations

from campaigns.real_programs.program import Program


def _program(name: str, uses: str, *packages: str, library: str = "", seconds: float = 180.0) -> Program:
    return Program(f"trainers/{name}", uses, packages, library=library or packages[0], seconds=seconds)


PROGRAMS = (
    _program("accelerate_test_script", "its own test script, that of `accelerate test`", "accelerate", seconds=400),
    _program(
        "accelerate_test_ops", "its own tests: gather, broadcast, reduce, pad across ranks, debug mode", "accelerate"
    ),
    _program(
        "accelerate_test_sync", "its own tests: accumulation, `no_sync`, uneven inputs", "accelerate", seconds=400
    ),
    _program("accelerate_training", "a loop under DDP and FSDP2, metrics, saved and loaded state", "accelerate"),
    _program("lightning_fabric", "Fabric with DDP, accumulation, collectives, a checkpoint", "lightning"),
    _program("lightning_trainer", "Trainer with DDP: fit, validate, test, predict, synchronised logs", "lightning"),
    _program("ignite_idist", "`idist.Parallel`, engines and metrics of all ranks", "pytorch-ignite"),
    _program("transformers_trainer", "Trainer on a tiny GPT-2, evaluation, checkpoints", "transformers", "accelerate"),
    _program("trl_sft", "SFTTrainer on a tiny Llama", "trl", "datasets"),
    _program("mmengine_runner", "Runner with DDP and a metric over all ranks", "mmengine"),
    _program("deepspeed_zero", "ZeRO stages 0, 1 and 2, checkpoints", "deepspeed", seconds=600),
    _program("fairscale_oss", "OSS, ShardedDataParallel, AdaScale", "fairscale"),
    _program("torchtnt_framework", "AutoUnit with DDP, distributed utilities", "torchtnt", "setuptools<81"),
)
