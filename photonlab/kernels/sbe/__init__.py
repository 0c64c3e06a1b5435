"""Simple Binary Encoding: schemas as field tables, messages as dicts for people, fields and groups for kernels."""
