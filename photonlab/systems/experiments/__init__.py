"""Loops that are not products: the things that the notebooks compare and take apart."""
