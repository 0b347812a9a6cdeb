"""Functions of MindSpore as they were before some release, where their parameters were others: a module for each such release."""
