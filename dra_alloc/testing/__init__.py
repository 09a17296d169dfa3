"""What authors of drivers and schedulers need to test what the allocator decides for them.

`model` is a plain, slow allocator to compare with, `strategies` makes random clusters for hypothesis, `invariants`
checks that an allocation keeps the rules. Nothing here is needed to allocate.
"""
