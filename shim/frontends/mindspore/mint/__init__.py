"""``mindspore.mint``: only ``distributed`` of it."""
