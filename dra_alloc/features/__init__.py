"""One module a feature of DRA that surrounds the search (KEP by KEP)."""
