"""Programs that use what libraries build on torch.distributed."""

from __future__ import annotations

from campaigns.real_programs.program import Program


def _program(name: str, uses: str, *packages: str, library: str = "", seconds: float = 180.0) -> Program:
    return Program(f"libraries/{name}", uses, packages, library=library or packages[0], seconds=seconds)


PROGRAMS = (
    _program(
        "torchmetrics_sync",
        "metrics synchronised by `compute` and on each step, lists of uneven lengths",
        "torchmetrics",
    ),
    _program("torcheval_sync", "`sync_and_compute`, synchronised state dicts", "torcheval"),
    _program("metric_learning", "distributed loss and miner wrappers", "pytorch-metric-learning"),
    _program("vector_quantize", "codebooks learned by all ranks", "vector-quantize-pytorch"),
    _program("torchsnapshot_restore", "`take`, `restore`, `async_take`", "torchsnapshot"),
    _program("timm_utils", "`reduce_tensor`, `distribute_bn`, training under DDP", "timm"),
    _program("open_clip_losses", "CLIP's and SigLIP's losses over all ranks", "open_clip_torch"),
    _program("fvcore_distributed", "differentiable collectives, detectron2's batch norm on them", "fvcore"),
    _program("tensordict_transfer", "TensorDicts sent, received and reduced", "tensordict"),
    _program("lightly_losses", "NT-Xent, Barlow Twins, VICReg, SwAV and DINO over all ranks", "lightly"),
    _program("monai_dist", "gathering of uneven tensors and strings, samplers, Dice", "monai"),
    _program("mmengine_dist", "its collectives on tensors, dicts, objects and results", "mmengine"),
    _program("ring_attention", "ring and striped attention, tree decoding", "ring-attention-pytorch"),
    _program("st_moe", "experts on different ranks", "st-moe-pytorch"),
    _program("megatron_tensor_parallel", "tensor-parallel layers, embedding and loss", "megatron-core"),
    Program(
        "libraries/torchrec_embeddings",
        "embedding tables by table, by column and on all ranks",
        ("iopath", "pyre-extensions", "tensordict", "torchmetrics", "tqdm"),
        alone=("torchrec==1.8.0", "fbgemm-gpu-cpu==1.8.0"),  # it asks for an old torchmetrics, and for fbgemm on CUDA
        library="torchrec",
    ),
    _program("torchtitan_pieces", "meshes, sums over them, clipping of sharded gradients", "torchtitan"),
    _program("sentence_transformers_loss", "losses with negatives of all ranks", "sentence-transformers"),
    _program("peft_fsdp", "LoRA under DDP and `fully_shard`", "peft", "transformers"),
    Program(
        "libraries/streaming_dataset",
        "StreamingDataset over the ranks, resumed",
        ("python-snappy", "zstd", "Brotli", "boto3", "catalogue", "matplotlib"),
        alone=("mosaicml-streaming",),  # it asks for a NumPy older than that of others
        library="mosaicml-streaming",
    ),
)
