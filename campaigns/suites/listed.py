"""All suites: data, with what is left out of each and what differs."""

from __future__ import annotations

from campaigns.suites.suite import ENGINE, FRONTEND, GLOO, Difference, LeftOut, Selection, Suite

_PYTEST = ("pytest", "pytest-timeout", "numpy<2")
_IN_TIME = ("--timeout=180",)

ACCELERATE = Suite(
    "accelerate",
    "accelerate",
    "1.15.0",
    (
        Selection(
            (
                "tests/test_cpu.py",
                "tests/test_grad_sync.py",
                "tests/test_scheduler.py",
                "tests/test_kwargs_handlers.py",
                "tests/test_multidevice.py",
            ),
            options=("--deselect=tests/test_multidevice.py::MultiDeviceTester::test_distributed_data_loop", *_IN_TIME),
            variables=(("ACCELERATE_USE_CPU", "true"),),
        ),
    ),
    ("accelerate==1.15.0", "parameterized", "transformers", "datasets<4.4", "pyarrow<22", *_PYTEST),
    replaced=(
        ("require_multi_device", "require_cpu"),
        (r"DEFAULT_LAUNCH_COMMAND \+", '["torchrun", "--nproc-per-node=2"] +'),
    ),
    adapted="tests for several GPUs run on two CPU ranks, by torchrun",
)

TORCHMETRICS = Suite(
    "torchmetrics",
    "torchmetrics",
    "1.9.0",
    (
        Selection(
            (
                "unittests/bases/test_ddp.py",
                "unittests/bases/test_aggregation.py",
                "unittests/wrappers/test_running.py",
                "unittests/clustering/test_rand_score.py",
                "unittests/text/test_perplexity.py",
            ),
            folder="tests",
            options=("-m", "DDP", "-o", "markers=DDP: distributed", *_IN_TIME),
            variables=(("USE_PYTEST_POOL", "1"),),
        ),
    ),
    (
        "torchmetrics==1.9.0",
        "cachier==4.1.0",
        "scikit-learn<1.8",
        "scipy",
        "pandas<3",
        "statsmodels",
        "dython==0.7.9",
        "cloudpickle",
        "transformers",
        *_PYTEST,
    ),
    repository="Lightning-AI/torchmetrics",
    revision="v1.9.0",
)

FABRIC = Suite(
    "lightning-fabric",
    "lightning",
    "2.6.5",
    (
        Selection(
            (
                "tests_fabric/strategies/test_ddp_integration.py",
                "tests_fabric/strategies/launchers/test_multiprocessing_integration.py",
                "tests_fabric/plugins/collectives/test_torch_collective.py",
                "tests_fabric/utilities/test_distributed.py",
            ),
            folder="tests",
            options=(
                "--deselect=tests_fabric/plugins/collectives/test_torch_collective.py::test_two_groups",
                *_IN_TIME,
            ),
        ),
        Selection(
            tuple(
                f"tests_fabric/strategies/test_ddp_integration.py::test_clip_gradients[{clip}-cpu-32-true]"
                for clip in ("norm", "val")
            ),
            folder="tests",
            options=_IN_TIME,
            variables=(("PL_RUN_STANDALONE_TESTS", "1"),),
        ),
    ),
    ("lightning==2.6.5", "tensorboardX", "click", *_PYTEST),
    repository="Lightning-AI/pytorch-lightning",
    revision="2.6.5",
)

_TO_CPU = (
    (r"import torch_npu.*", ""),
    (r"torch\.npu\.device_count\(\)", "4"),
    (r"\bnpu\b", "cpu"),
    (r"\bhccl\b", "gloo"),
    (r", device_id=device\)", ")"),  # torch's gloo takes none
)

CANDLE = Suite(
    "candle",
    "torch",
    "",
    (
        Selection(
            tuple(
                f"tests/distributed/test_{name}.py"
                for name in (
                    "gloo_async_collectives",
                    "new_group_input_validation_gloo",
                    "new_group_rank_bounds_gloo",
                    "new_group_sequence_gloo",
                    "ddp_unused_params",
                    "distributed_mvp_baseline",
                    "fsdp2_gloo",
                    "hccl_all_to_all_single_async_unequal_multicard",
                    "hccl_monitored_barrier_multicard",
                    "hccl_new_group_semantics_multicard",
                    "hccl_new_subgroups_by_enum_semantics_multicard",
                    "hccl_new_subgroups_parent_multicard",
                )
            ),
            options=_IN_TIME,
        ),
    ),
    _PYTEST,
    repository="candle-org/candle",
    revision="72f5f0be9b03453beaa51f5034731ea1f1f2a365",
    replaced=(
        (r"\bcandle\b", "torch"),
        (r"\bDevice\(", "device("),
        (r"nn\.DistributedDataParallel", "nn.parallel.DistributedDataParallel"),
        *_TO_CPU,
    ),
    frontend=(("import torch.distributed as dist", "import shim.frontends.torch.distributed as dist"),),
    ways=(GLOO, ENGINE, FRONTEND),
    adapted="`torch` for `candle`, CPUs and gloo for NPUs and HCCL",
)

HYPER_PARALLEL = Suite(
    "hyper-parallel",
    "torch",
    "",
    (
        Selection(("test_process_group.py", "test_device_mesh.py"), folder="tests/torch/process_group"),
        Selection(("test_redistribute.py", "test_base_dtensor.py"), folder="tests/torch/shard"),
    ),
    _PYTEST,
    repository="mindspore-ai/hyper-parallel",
    revision="fdd0a808423ac220f66a5009fdd827429b6fb82f",
    paths=("tests", "hyper_parallel"),
    replaced=_TO_CPU,
    adapted="CPUs and gloo for NPUs and HCCL; HyperParallel's own code too",
)

SUITES = (ACCELERATE, TORCHMETRICS, FABRIC, CANDLE, HYPER_PARALLEL)
LEFT_OUT = (
    LeftOut(
        "accelerate",
        "`test_distributed_data_loop`",
        "`join_uneven_inputs` does nothing on CPUs: the test waits for ever",
    ),
    LeftOut("accelerate", "all other files of `tests/`", "they start no ranks, or need GPUs"),
    LeftOut("torchmetrics", "the other metrics", "not tried: all go through one harness, which these files use"),
    LeftOut("lightning-fabric", "`test_two_groups`", "its authors expect it to time out; under load it does, on gloo"),
    LeftOut("lightning-fabric", "tests that need two GPUs, XLA or DeepSpeed", "they skip on CPUs"),
    LeftOut("lightning-fabric", "the other files", "they replace ranks and groups by mocks, or were not tried"),
    LeftOut("lightning-fabric", "release 2.6.6", "its source distribution has no tests, as that of torchmetrics 1.9.0"),
    LeftOut(
        "candle",
        "`split_group(color=)`, `ddp.reducer`, the texts of errors",
        "they are Candle's own; torch has other ones",
    ),
    LeftOut("candle", "three tests of `new_group`", "they end after 20 s, too early for two ranks on a busy machine"),
    LeftOut("candle", "the other files", "they test Candle's inside with stubs, or were not tried"),
    LeftOut(
        "hyper-parallel", "operators, `fully_shard`, HSDP, pipelines", "not tried: each test starts eight processes"
    ),
    LeftOut(
        "hyper-parallel",
        "its tests on MindSpore",
        'MindSpore makes no world on CPUs: "Only support hccl now". On 8 ranks of `shim run --as-installed`, '
        "`process_group.py` passes; "
        "`redistribute.py` needs MindSpore's plugin for Ascend",
    ),
)
DIFFERENCES = (
    Difference(
        "lightning-fabric",
        "*::test_clip_gradients*",
        "the test passes; its teardown, before the world is destroyed, finds the engine's idle thread for asynchronous calls",
    ),
    Difference(
        "candle",
        "*::test_ddp_single_process_train_step_cpu",
        "torch's DDP sees the frontend's world only after `import shim.torch_backend`, which the test lacks",
    ),
)
