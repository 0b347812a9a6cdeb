"""PaddlePaddle's collective-communication API, at the signatures of paddle 3.3.1."""
