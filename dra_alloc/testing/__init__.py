"""What authors of drivers and schedulers need to test what the allocator decides for them.

`kit` has assertions that explain themselves, `plugin` is the pytest plugin that hands them out as fixtures. `model` is
a plain, slow allocator to compare with, `strategies` makes random clusters for hypothesis, each a `scenario`;
`outcomes` compares two answers, `invariants` checks that an allocation keeps the rules. `strategies` and `plugin` need
the extra `testing`. Nothing here is needed to allocate.
"""

__all__ = ["invariants", "kit", "model", "outcomes", "plugin", "scenario", "strategies"]
