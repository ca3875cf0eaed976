"""What each command does, one file a command; `cli` only declares them."""
