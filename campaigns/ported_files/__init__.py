"""Port thirty public files, and run functions of theirs before and after: ``docs/ported_files.md``."""
