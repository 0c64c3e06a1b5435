"""Transports: ways for bytes from one process to another, behind one interface of kernels."""
