"""The private PostgreSQL server, and the database engine that starts it on demand.

Used as Django's ENGINE `acw.embedded`. Knows no settings, so that the tests can start
a server of their own before there are any.
"""
