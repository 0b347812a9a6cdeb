"""Dumps in the form in which torch writes them."""

from __future__ import annotations

from typing import Any

# As NCCL's watchdog writes it on a cluster: a call that completed, and one that rank 1 never made.
REAL: dict[str, Any] = {
    "version": "2.10",
    "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
    "pg_status": {"0": {"last_enqueued_collective": 2, "last_started_collective": 2, "last_completed_collective": 1}},
    "entries": [
        {
            "record_id": k, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": k + 1, "p2p_seq_id": 0,
            "op_id": k + 1, "profiling_name": ("nccl:all_reduce", "nccl:_all_gather_base")[k],
            "time_created_ns": 1_700_000_000_000_000_000 + k, "duration_ms": 1.0,
            "input_sizes": [[1024, 8]], "input_dtypes": ["BFloat16"], "output_sizes": [[1024, 8], [2048, 8]][k : k + 1],
            "output_dtypes": ["BFloat16"], "state": ("completed", "started")[k],
            "time_discovered_started_ns": 1_700_000_000_000_000_500 + k,
            "time_discovered_completed_ns": (1_700_000_000_000_100_000, None)[k], "retired": k == 0, "timeout_ms": 600000,
            "is_p2p": False,
            "frames": [
                {"name": "all_reduce", "filename": "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", "line": 2806},
                {"name": "train_step", "filename": "/job/train.py", "line": 41 + k},
            ],
        }
        for k in range(2)
    ],
}  # fmt: skip


# As torch 2.13 writes it for gloo: the group is described under another name, and a call that has ended is "retired".
GLOO: dict[str, Any] = {
    "version": "2.10",
    "pg_config": {"": {"name": "", "desc": "", "ranks": "[0, 1]"}},
    "entries": [
        {
            "record_id": 0, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": 1, "p2p_seq_id": 0, "op_id": 1,
            "profiling_name": "gloo:all_gather", "time_created_ns": 1_795_719_413_385_544_226, "input_sizes": [[4]],
            "input_dtypes": ["Float"], "output_sizes": [[2, 4]], "output_dtypes": ["Float"], "state": "scheduled",
            "time_discovered_started_ns": None, "time_discovered_completed_ns": None, "retired": retired, "timeout_ms": 1_800_000,
            "is_p2p": False, "frames": [],
        }
        for retired in (True, False)
    ],
}  # fmt: skip
