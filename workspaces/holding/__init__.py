"""Who holds a worktree and until when, and how it is made usable for who acquires it."""
