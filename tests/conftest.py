"""The plugins the project's own tests use; ``shim.testing`` registers itself when the package is installed."""

pytest_plugins = ["pytester"]
