"""The verbs of ``manage.py workspace`` and ``manage.py worktree``.

Each is a :class:`jobs.command_line.Verb` in :data:`workspaces.management.commands.workspace.VERBS` or in that of ``worktree``.
"""
