"""The frameworks' signatures over one engine: each package mirrors one framework's module paths at one version."""
