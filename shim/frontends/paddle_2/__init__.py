"""PaddlePaddle's collective-communication API, at the signatures of paddle 2.6.2."""
