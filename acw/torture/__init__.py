"""What `manage.py jobs torture` does to the queue, and how it sees whether that has kept its promises.

Real workers run jobs in a schema of their own (`scratch`) while they are killed, suspended, stopped and cut off (`faults`),
and while a producer commits and rolls back (`producer`). Every handler notes what it does (`ledger`), and every change
of a job's row is noted by a trigger (`tables`); at the end SQL alone says what was broken (`invariants`). `settings` installs
this package as an app in those processes, and in no others.
"""
