"""What `manage.py benchjobs` measures, and how: the queue beside the plain SQL that bounds it.

Everything happens in a schema of its own, see `scratch`. `settings` installs this package as an app in
the processes that are measured, and in no others.
"""
