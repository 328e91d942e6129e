"""`worktree show`: all that is known of a worktree, and what of it would be archived."""

from __future__ import annotations

import argparse

from django.core.management.base import BaseCommand
from django.db.models.functions import Now

from jobs.command_line import Options, Verb
from jobs.tables import print_json
from workspaces import paths
from workspaces.archiving import lookup
from workspaces.commands.listing import as_json
from workspaces.commands.verb import add_json, id_argument, print_facts
from workspaces.models import Worktree
from workspaces.pruning import forecast
from workspaces.pruning.contents import Contents


def _arguments(parser: argparse.ArgumentParser) -> None:
    id_argument(parser)
    add_json(parser)


def _show(command: BaseCommand, options: Options) -> None:
    rows = Worktree.objects.select_related("workspace").annotate(now=Now())
    worktree = rows.filter(pk=options["id"]).first()
    if worktree is None:
        raise lookup.unknown(options["id"])
    facts = as_json(worktree)
    found = _look(worktree)
    if options["json"]:
        contents, unknown = (
            (None, found) if isinstance(found, str) else (found.as_data(), "")
        )
        facts |= {"contents": contents, "contents_unknown": unknown}
        print_json(command.stdout, facts)
        return
    words = found if isinstance(found, str) else forecast.in_words(found)
    print_facts(command, {**facts, "would_be_archived": words})


def _look(worktree: Worktree) -> Contents | str:
    found = forecast.look(worktree)
    if isinstance(found, str) or paths.own_worktree_path(worktree).is_dir():
        return found
    return "its directory is not on the disk"


SHOW = Verb(
    name="show",
    help="all that is known of one, and what of it would be archived now",
    add_arguments=_arguments,
    run=_show,
)
