"""What :mod:`workspaces.git` and :mod:`workspaces.repository` are made of: processes, control directories, references, locks."""
