"""A pytest plugin that runs a test on several rank processes at once.

::

    @pytest.mark.ranks(2, 4)
    def test_sum(rank, world_size):
        dist.init_process_group()
        tensor = torch.tensor([float(rank)])
        dist.all_reduce(tensor)
        assert tensor.item() == sum(range(world_size))

The test becomes one for each world size, and those of one world size in a module run after each other. The rank processes
are started once for them and used again, as importing a framework takes seconds; what a test leaves of its world is closed after it,
and after a failure new processes are started. See docs/testing.md.
"""

from __future__ import annotations

from shim.testing.expected_errors import raises

__all__ = ["pytest_plugins", "raises"]

pytest_plugins = ["shim.testing.plugin"]  # which pytest loads with this package
