"""The recording of this process's calls: one file, which the calls' engine writes and ``shim trace`` reads."""
