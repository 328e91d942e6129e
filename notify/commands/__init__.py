"""What `manage.py webhook` can do: a module for each verb or few.

Each is a :class:`jobs.command_line.Verb` in :data:`notify.management.commands.webhook.VERBS`.
"""
