"""Groups, and who is in them."""
