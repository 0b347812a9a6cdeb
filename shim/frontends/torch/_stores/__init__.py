"""torch's stores, and meeting at one."""
