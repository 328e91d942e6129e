"""Archives of worktrees: everything that one was, kept as a commit of its clone, and made again from that."""
