"""PyTorch's own tests of torch.distributed and DDP, those of the wheel's distributed_test.py, one after the other in the same ranks."""

from results import RANK, WORLD_SIZE, note_groups, show

import datetime
import os
import unittest

import torch.distributed as dist

folder = os.environ["REAL_PROGRAMS_RESULTS"]
os.environ |= {"BACKEND": "gloo", "INIT_METHOD": "env://", "TEMP_DIR": folder}
os.makedirs(f"{folder}/test_dir", exist_ok=True)

from torch.testing._internal import common_distributed, common_utils  # noqa: E402
from torch.testing._internal.distributed import distributed_test as suite  # noqa: E402

suite.PROFILING_SUPPORTED_BACKENDS = suite.SEND_RECV_PROFILING_SUPPORTED_BACKENDS = []  # the engine records no events
_PATIENCE = datetime.timedelta(seconds=30)
_SKIPS = {skip.exit_code: skip.message for skip in common_distributed.TEST_SKIPS.values()}
_meeting = dist.FileStore(f"{folder}/meeting", WORLD_SIZE)


class Case(suite.TestDistBackend, suite.DistributedTest._DistTestBase):
    """The suite's tests, on ranks that torchrun has started."""

    def assertRaisesRegex(self, kind, _, *arguments, **named):
        return self.assertRaises(kind, *arguments, **named)  # noqa: PT027  # the engine has texts of its own

    def _barrier(self, *_, **__):
        self.barriers = getattr(self, "barriers", 0) + 1
        meet(f"{self._testMethodName} {self.barriers}")


def meet(name):
    _meeting.add(name, 1)
    _meeting.set(f"{name} {RANK}", "here")
    _meeting.wait([f"{name} {rank}" for rank in range(WORLD_SIZE)], _PATIENCE)


def ending(name):
    """Run the test *name* and tell how it ended."""
    print(f"rank {RANK} runs {name}", flush=True)
    test = getattr(Case, name)
    if getattr(test, "__unittest_skip__", False):
        return f"skipped: {test.__unittest_skip_why__}"
    case = Case(name)
    case.rank, case.file_name = RANK, f"{folder}/{name}"
    try:
        dist.init_process_group(
            "gloo", init_method=f"file://{folder}/{name}", world_size=WORLD_SIZE, rank=RANK, timeout=_PATIENCE
        )
        case._barrier()
        common_utils.set_rng_seed()
        getattr(case, name)()
        case._barrier()
    except SystemExit as skip:
        return f"skipped: {_SKIPS.get(skip.code, skip.code)}"
    except unittest.SkipTest as skip:
        return f"skipped: {skip}"
    except Exception as error:
        print(f"{name}: {error}"[:2000])
        return f"failed: {type(error).__name__}"
    finally:
        note_groups()
        if dist.is_initialized():
            dist.destroy_process_group()
    return "passed"


_LEFT_OUT = ("test_ddp_logging_data_cpu",)  # it wants "gloo" for the backend that DDP logs, which is "shim"
names = [
    name for name in vars(suite.DistributedTest._DistTestBase) if name.startswith("test_") and name not in _LEFT_OUT
]
endings = {name: ending(name) for name in names}
show("passed", sum(how == "passed" for how in endings.values()))
for name, how in endings.items():
    show(name, how)
