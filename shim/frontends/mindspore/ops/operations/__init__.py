"""``mindspore.ops.operations``: only ``comm_ops`` of it."""
