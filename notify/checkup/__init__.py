"""A receiver's check-up: what it accepts, and what it has to refuse.

:mod:`~notify.checkup.probes` says what is sent, :mod:`~notify.checkup.judging` what an answer to it means,
:mod:`~notify.checkup.run` sends, and :mod:`~notify.checkup.report` is what came of it.
"""
