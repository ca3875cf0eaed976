"""The studies of the paper, a file each."""
