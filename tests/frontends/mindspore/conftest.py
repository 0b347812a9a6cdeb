"""This file lets pytest put its folder on the path: the tests in the folders below import ``mindspore_world`` and ``mindspore_slopes``."""
