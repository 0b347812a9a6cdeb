"""The layer on an engine where ``SHIM_TRACE`` is set: it records every call."""
