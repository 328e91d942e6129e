"""Looking into worktrees, warning of their removal, and removing them so that it can be undone."""
