"""PyTorch's own tests of ``torch.distributed``, run on the torch frontend: ``python -m campaigns.torch_suite --help``.

The tests are those of the installed wheel, ``torch/testing/_internal/distributed/distributed_test.py``, as they are. Each runs in rank processes that are
started once for a world size. What gloo does with each test is on record; a test that gloo passes has to pass here.
"""
