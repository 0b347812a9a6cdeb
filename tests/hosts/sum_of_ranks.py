"""The program that ``test_launchers_on_hosts`` has each launcher start on two hosts."""

import json
import os
import sys
from pathlib import Path

import numpy as np

import shim.frontends.torch.distributed as dist
from shim.core.job.rendezvous import locate

dist.init_process_group()
rank, total = dist.get_rank(), np.arange(3.0) + dist.get_rank()
dist.all_reduce(total)
job = locate()
seen = {"key": job.key, "launcher": job.launcher, "several": bool(job.several_hosts), "host": os.uname().nodename}
(Path(sys.argv[1]) / f"rank{rank}.json").write_text(json.dumps(seen | {"sum": total.tolist()}))
dist.destroy_process_group()
