"""Studies of ours, beyond the paper: run when named."""
