"""The product with one mistake in it, a hundred times: do the tests see each?"""
