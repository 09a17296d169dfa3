# distutils: language = c++
# cython: language_level=3
"""The search. Nothing about Kubernetes in here, only tables."""
