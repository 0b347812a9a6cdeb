"""What stands before an engine where ``SHIM_TRACE`` is set: it records every call."""
