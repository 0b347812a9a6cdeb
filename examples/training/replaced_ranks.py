"""Training that goes on when ranks are lost: each is started again, all meet once more, and repeat at most one step.

    shim run -n 4 --replace 10 examples/training/replaced_ranks.py

Kill any of the ranks meanwhile. On several hosts, add --hosts host0,host1 (and -n 2).
"""

import os
import sys
import time

import numpy as np

import shim
import shim.frontends.torch.distributed as dist

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
PAUSE = float(sys.argv[2]) if len(sys.argv) > 2 else 0.02  # seconds that a step computes


def one_step(weights: np.ndarray, step: int) -> np.ndarray:
    """Return the weights after a step: the same on all ranks."""
    time.sleep(PAUSE)
    gradient = np.full_like(weights, dist.get_rank() + step)
    dist.all_reduce(gradient)
    return weights - 0.01 * gradient / dist.get_world_size()


def take_the_latest(weights: np.ndarray, step: int) -> int:
    """Copy into *weights* those of the rank that has come furthest, and return its step. A new rank has none."""
    steps = np.zeros(dist.get_world_size(), np.int64)
    dist.all_gather_single(steps, np.array([step]))
    dist.broadcast(weights, src=int(steps.argmax()))
    return int(steps.max())


def main() -> None:
    weights, step, meetings, is_done = np.zeros(1000), 0, 0, False
    while not is_done:
        try:
            dist.init_process_group()
            meetings += 1
            step = take_the_latest(weights, step)
            while step < STEPS:
                weights, step = one_step(weights, step), step + 1
            dist.barrier()  # nobody ends before all have come so far
            is_done = True
        except shim.errors.PeerLostError as lost:
            print(f"step {step}: {str(lost).splitlines()[0]}", flush=True)
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()
    expected = -0.01 * sum(step + (int(os.environ["WORLD_SIZE"]) - 1) / 2 for step in range(STEPS))
    assert np.allclose(weights, expected), (weights[0], expected)
    print(f"{STEPS} steps done, in {meetings} meeting{'s' * (meetings != 1)}")


if __name__ == "__main__":
    main()
