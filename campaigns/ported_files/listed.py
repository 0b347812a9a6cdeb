"""Thirty public files, chosen before any was ported, and calls of functions in them."""

from __future__ import annotations

from typing import NamedTuple

from campaigns.ported_packages.listed import OF_TORCH, Package

_OF_PADDLE = ("torch", "mindspore")
_OF_MINDSPORE = ("torch", "paddle_3")


def _of_torch(name: str, version: str, file: str) -> Package:
    return Package(name, version, "torch", OF_TORCH, (file,))


FILES = (
    _of_torch("catalyst", "22.4", "catalyst/utils/distributed.py"),
    _of_torch("colossalai", "0.5.0", "colossalai-0.5.0/colossalai/quantization/fp8.py"),
    _of_torch("colossalai", "0.5.0", "colossalai-0.5.0/colossalai/shardformer/layer/utils.py"),
    _of_torch("composer", "0.32.1", "composer/utils/dist.py"),
    _of_torch("deepspeed", "0.3.1.dev5", "deepspeed/runtime/utils.py"),
    _of_torch("espnet", "202611", "espnet2/gan_codec/shared/quantizer/modules/core_vq.py"),
    _of_torch("espnet", "202611", "espnet2/gan_codec/shared/quantizer/modules/distrib.py"),
    _of_torch("fairscale", "0.4.9", "fairscale-0.4.9/fairscale/nn/model_parallel/initialize.py"),
    _of_torch("fairscale", "0.4.9", "fairscale-0.4.9/fairscale/optim/oss.py"),
    _of_torch("fairseq", "0.9.0", "fairseq-0.9.0/fairseq/distributed_utils.py"),
    _of_torch("lightly", "1.6.0", "lightly/loss/swav_loss.py"),
    _of_torch("lightly", "1.6.0", "lightly/utils/dist.py"),
    _of_torch("mmcv-full", "1.7.2", "mmcv-full-1.7.2/mmcv/runner/dist_utils.py"),
    _of_torch("mosaicml-streaming", "0.9.1", "streaming/base/distributed.py"),
    _of_torch("pytorch-ignite", "0.6.0.dev20261027", "ignite/distributed/comp_models/native.py"),
    _of_torch("pytorch-metric-learning", "2.9.0", "pytorch_metric_learning/utils/distributed.py"),
    _of_torch("solo-learn", "1.0.2", "solo/utils/kmeans.py"),
    _of_torch("solo-learn", "1.0.2", "solo/utils/sinkhorn_knopp.py"),
    _of_torch("speechbrain", "1.1.2", "speechbrain/utils/distributed.py"),
    _of_torch("torchtitan", "0.3.0", "torchtitan/distributed/utils.py"),
    _of_torch("transformers", "5.9.0", "transformers/trainer_pt_utils.py"),
    _of_torch("vissl", "0.1.6", "classy_vision/generic/distributed_util.py"),
    _of_torch("xtuner", "0.2.0rc0", "xtuner/parallel/sequence/comm.py"),
    Package("paddleseg", "2.8.0", "paddle_2", _OF_PADDLE, ("paddleseg/core/val.py",)),
    Package("paddlespeech", "1.5.0", "paddle_2", _OF_PADDLE, ("paddlespeech/t2s/exps/speedyspeech/train.py",)),
    Package("paddlevideo", "0.0.1", "paddle_2", _OF_PADDLE, ("ppvideo/paddlevideo/metrics/center_crop_metric.py",)),
    Package("ppdiffusers", "0.9.0", "paddle_2", _OF_PADDLE, ("ppdiffusers/training_utils.py",)),
    Package("mindformers", "2.1.0", "mindspore", _OF_MINDSPORE, ("mindformers/checkpoint/broadcast.py",)),
    Package(
        "mindformers", "2.1.0", "mindspore", _OF_MINDSPORE, ("mindformers/pynative/distributed/expert_parallel.py",)
    ),
    Package(
        "mindspore-gs",
        "1.4.1",
        "mindspore",
        _OF_MINDSPORE,
        ("mindspore_gs/ptq/quant_cells/mindformers/parallel_minmax.py",),
    ),
)


class Use(NamedTuple):
    """Calls of the function *name* of the file that ends in *file*, on each rank. ``x`` is float32 [2, 3], ``i`` int64 [4], ``group`` has all ranks."""

    file: str
    name: str
    code: str


USES = (
    Use("catalyst/utils/distributed.py", "mean_reduce", "seen = mean_reduce(x, size)"),
    Use("core_vq.py", "all_gather_variably_sized", "seen = all_gather_variably_sized(x, [2] * size)"),
    Use("core_vq.py", "all_gather_sizes", "seen = all_gather_sizes(x, 1)"),
    Use("modules/distrib.py", "average_metrics", "seen = average_metrics({'loss': 1.0 + rank, 'accuracy': 0.5}, 1.0 + rank)"),
    Use("modules/distrib.py", "broadcast_tensors", "broadcast_tensors([x, i], size - 1)\nseen = x, i"),
    Use("swav_loss.py", "sinkhorn", "seen = sinkhorn(x * 0.01, gather_distributed=True)"),
    Use("lightly/utils/dist.py", "gather", "seen = gather(x)"),
    Use("lightly/utils/dist.py", "eye_rank", "seen = eye_rank(3)"),
    Use("runner/dist_utils.py", "allreduce_params", "allreduce_params([x, x * 2])\nseen = x"),
    Use("streaming/base/distributed.py", "all_gather_object", "seen = all_gather_object({'rank': rank})"),
    Use("pytorch_metric_learning/utils/distributed.py", "all_gather", "seen = all_gather(x), all_gather(i)"),
    Use("sinkhorn_knopp.py", "SinkhornKnopp", "seen = SinkhornKnopp(world_size=size)(x * 0.01)"),
    Use("trainer_pt_utils.py", "distributed_concat", "seen = distributed_concat([x, {'i': i}], 3)"),
    Use("trainer_pt_utils.py", "distributed_broadcast_scalars", "seen = distributed_broadcast_scalars([1.5, 2.5 * rank], 3, 'cpu')"),
    Use("distributed_util.py", "all_reduce_mean", "seen = all_reduce_mean(x)"),
    Use("distributed_util.py", "gather_from_all", "seen = gather_from_all(x), gather_from_all(x.sum())"),
    Use("sequence/comm.py", "all_to_all", "seen = all_to_all(x.reshape(1, 6, 1), group, 1, 0) if size < 4 else None"),
    Use("sequence/comm.py", "split_for_sequence_parallel", "seen = split_for_sequence_parallel(x.reshape(6), 0, group)"),
)  # fmt: skip
