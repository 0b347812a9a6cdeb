"""Other projects' own tests of distributed code, on gloo and on the engine: ``python -m campaigns.suites --help``."""
