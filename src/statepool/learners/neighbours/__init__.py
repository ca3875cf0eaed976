"""Methods from the literature, on the same contract."""
