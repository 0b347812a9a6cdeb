"""``torch.utils``, of which ``data`` has something that asks which rank this is."""
