"""Port the distributed code of public packages, and compare what comes of it with what another converter does: ``docs/ported_packages.md``."""
