"""The commands, by what they work on; `cli` assembles them."""
