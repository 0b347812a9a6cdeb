"""accelerate's own tests of its operations: gather, gather_object, broadcast, pad_across_processes, reduce, and its debug mode."""

from results import note_groups, show

import runpy

import accelerate

accelerate.Accelerator(cpu=True)  # the script goes on with its process groups
note_groups()
runpy.run_module("accelerate.test_utils.scripts.test_ops", run_name="__main__")
show("ended", True)
