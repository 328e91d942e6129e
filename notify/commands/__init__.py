"""What `manage.py webhook` can do: a module for each verb or few.

Each is a :class:`notify.commands.verb.Verb` in :data:`notify.management.commands.webhook.VERBS`.
"""
