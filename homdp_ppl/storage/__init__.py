"""Crash-safe files: atomic writes, the record format, journals, locks and npz files."""
