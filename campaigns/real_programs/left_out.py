"""What cannot be tried here, with the reason."""

from __future__ import annotations

from campaigns.real_programs.program import LeftOut

LEFT_OUT = (
    LeftOut(
        "torch", "SyncBatchNorm", "its layer refuses inputs on CPUs; `fvcore_distributed` has such a layer for them"
    ),
    LeftOut("torch", "context parallel", "its attention on CPUs has no sharding strategy"),
    LeftOut(
        "torch", "its test files for FSDP2 and DTensor", "the wheel has their tools alone, which `dtensor_op_db` uses"
    ),
    LeftOut("torch", "`test_ddp_logging_data_cpu` of its own tests", "it wants `gloo` in DDP's log, which has `shim`"),
    LeftOut(
        "accelerate",
        "its own test of uneven data loaders",
        "it needs `join_uneven_inputs`, which does nothing on CPUs, and waits for ever",
    ),
    LeftOut("megatron-core", "sequence parallelism, pipelines, its DDP", "they allocate on CUDA"),
    LeftOut("torchtitan", "its trainer", "it needs an accelerator"),
    LeftOut("torchft", "its manager", "it makes torch's ProcessGroupGloo by its class, not by a backend"),
    LeftOut("fastai", "`distrib_ctx`", "its data loaders ask for CUDA when they agree on an order"),
    LeftOut("tutel", "mixtures of experts", "not on the package index"),
    LeftOut(
        "detectron2", "`detectron2.utils.comm`", "not on the package index; `fvcore_distributed` has what is below it"
    ),
    LeftOut("mosaicml", "Composer's Trainer", "its releases fix versions of torch that are older"),
    LeftOut("colossalai", "boosters", "it fixes a transformers that is older than that of the other libraries"),
    LeftOut("speechbrain", "its Brain", "it needs torchaudio, whose wheel on the package index is for CUDA"),
)
