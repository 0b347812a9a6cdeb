"""DeepSpeed on CPUs: ZeRO stages 0 to 2, by its engine, with a checkpoint."""

from results import RANK, show

import os
import sys

import deepspeed
import torch
import torch.distributed as dist

os.environ.setdefault("LOCAL_RANK", str(RANK))
deepspeed.init_distributed(dist_backend="gloo")
for stage in (0, 1, 2):
    torch.manual_seed(19)
    model = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.ReLU(), torch.nn.Linear(20, 2))
    config = {
        "train_batch_size": 16, "gradient_accumulation_steps": 2, "gradient_clipping": 1.0,
        "zero_optimization": {"stage": stage}, "zero_allow_untested_optimizer": True, "steps_per_print": 10**6,
    }  # fmt: skip
    engine, *_ = deepspeed.initialize(
        model=model, optimizer=torch.optim.Adam(model.parameters(), lr=1e-2), config=config
    )
    for step in range(6):
        inputs = torch.randn(4, 10, generator=torch.Generator().manual_seed(40 * RANK + step))
        loss = engine(inputs).square().mean()
        engine.backward(loss)
        engine.step()
    show(f"stage {stage}: loss", loss)
    show(f"stage {stage}: parameters", engine.module)
    engine.save_checkpoint(os.environ["REAL_PROGRAMS_RESULTS"] + f"/stage{stage}")
    show(f"stage {stage}: norm", engine.get_global_grad_norm())
dist.destroy_process_group()
sys.stdout.flush()
