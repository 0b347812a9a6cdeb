"""Port notebooks: the code of all cells as one module, and their launch lines. The JSON keeps its layout byte for byte elsewhere."""
