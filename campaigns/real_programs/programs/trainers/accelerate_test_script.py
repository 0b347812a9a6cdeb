"""accelerate's own test script, ``accelerate test`` runs it: state, random seeds, data loaders, training, triggers, object gathering."""

from results import note_groups, show

import runpy

import accelerate

accelerate.Accelerator(cpu=True)  # the script goes on with its process groups
note_groups()
runpy.run_module("accelerate.test_utils.scripts.test_script", run_name="__main__")
show("ended", True)
