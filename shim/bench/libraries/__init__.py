"""One module per library that is measured, ours and others', imported in its rank processes alone."""
