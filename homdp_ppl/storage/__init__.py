"""Files that survive a crash: atomic writes, the record format, journals, locks, npz files."""
