"""Git workspaces, their worktrees, conversations and attachments."""
