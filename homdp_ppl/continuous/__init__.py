"""Numerical methods for real-valued spaces: quadrature, tables on cells, policies on cells."""
