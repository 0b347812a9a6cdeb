"""This file lets pytest put its folder on the path: the tests in the folders below import ``rank_numbers``."""
