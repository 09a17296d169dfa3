"""The parts of the plain-search model, each a chapter of the allocation rules."""
