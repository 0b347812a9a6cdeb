"""The environment in which the frameworks keep their remarks on start-up to themselves, which would stand between the lines of a table."""

from __future__ import annotations

QUIET = {"GLOG_v": "4", "GLOG_minloglevel": "2", "PYTHONWARNINGS": "ignore"}
