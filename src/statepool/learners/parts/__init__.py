"""What learners are made of: memories, counts, weights and trees that several of them share."""
