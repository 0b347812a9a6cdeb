"""The documentation site, which mkdocs makes as ``mkdocs.yml`` says: a hook, an extension that reads our docstrings, and the site's own files."""
