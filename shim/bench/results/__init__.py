"""What a run has found: figures, the record, and the tables, pages, pictures and promises made from it."""
