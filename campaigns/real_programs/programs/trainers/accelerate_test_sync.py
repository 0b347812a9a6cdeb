"""accelerate's own tests of gradient accumulation: no_sync, join_uneven_inputs, schedulers."""

from results import note_groups, show

import runpy

import accelerate

accelerate.Accelerator(cpu=True)  # the script goes on with its process groups
note_groups()
runpy.run_module("accelerate.test_utils.scripts.test_sync", run_name="__main__")
show("ended", True)
