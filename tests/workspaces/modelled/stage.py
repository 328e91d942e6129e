"""What all rules stand on: a clone of a remote, the worktrees that agents were given, and what is owed to them after each step."""

from __future__ import annotations

import datetime as dt
import logging
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import connection
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant

from notify.models import Notification
from tests.workspaces.modelled import deeds, observing
from tests.workspaces.modelled.observing import State
from tests.workspaces.remote import Remote
from workspaces import paths, topics
from workspaces.exceptions import WorkspacesError
from workspaces.models import Workspace, Worktree
from workspaces.repository import Repository
from workspaces.worktrees import registration

_KEPT_TABLES = {"auth_permission", "django_content_type", "django_migrations"}

WHICH = st.integers(0, 5)


@dataclass(frozen=True)
class Ground:
    """What every sequence begins with, made once: a remote, and a data directory with its clone. ``fires`` leaves a mark where it is run."""

    remote: Path
    data: Path
    fires: Path
    mark: Path


@dataclass
class Tree:
    """A worktree that an agent was given once, and what it was when an agent last did something in it.

    ``state`` is None where nothing is owed but the commits; ``away`` is where somebody has moved the directory to.
    """

    pk: int
    path: Path
    state: State | None = None
    # What only git knew of it is gone, by somebody who removed its registration.
    unregistered: bool = False
    commits: set[str] = field(default_factory=set)
    away: Path | None = None
    # Bytes that were put aside, for good.
    aside: set[str] = field(default_factory=set)
    damaged: bool = False
    fencing_no: int = 0
    warned: int = 0

    @property
    def is_there(self) -> bool:
        return self.path.is_dir() and not self.path.is_symlink()


class Log(logging.Handler):
    """All that is logged, with every extra."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.text: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.text.append(repr(record.__dict__))


class Stage(RuleBasedStateMachine):
    """The invariants. ``seen`` is what all sequences have come to."""

    seen: Counter[str] = Counter()

    def __init__(self, ground: Ground, directory: Path) -> None:
        super().__init__()
        self.seen["sequences"] += 1
        self.ground = ground
        self.directory = directory / f"sequence-{self.seen['sequences']}"
        shutil.copytree(ground.data, self.directory / "data")
        shutil.copytree(ground.remote, self.directory / "remotes")
        settings.ACW_DATA_DIR = self.directory / "data"
        self.remote = Remote(self.directory / "remotes")
        self.trees: dict[int, Tree] = {}
        self.planted = False
        self.require_warning = False
        self.log = Log()
        logging.getLogger().addHandler(self.log)
        self.workspace = self._begun()
        self.repository = Repository(paths.own_directory(self.workspace))
        self.clone = self.repository.path
        deeds.hooks(self.clone, ground.fires)

    def _begun(self) -> Workspace:
        _emptied()
        apps.get_model("auth", "User").objects.create(username="ada", is_superuser=True)
        directory = paths.workspace_directory("demo")
        return Workspace.objects.create(
            name="demo",
            url=self.remote.url,
            host=settings.ACW_HOST,
            path=str(paths.repository_path(directory)),
            default_branch="main",
        )

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None:
                self.everything_comes_back()
        finally:
            logging.getLogger().removeHandler(self.log)
            shutil.rmtree(self.directory, ignore_errors=True)

    def everything_comes_back(self) -> None:
        """The last step."""

    def tried(self, what: str, action: Callable[[], Any]) -> Any:
        """What it returns; None where it is refused, which changes nothing that is owed."""
        try:
            found = action()
        except WorkspacesError as error:
            self.seen[f"{what}: {type(error).__name__}"] += 1
            return None
        self.seen[f"{what}: ok"] += 1
        return found

    def one(self, which: int) -> Tree:
        return self.trees[sorted(self.trees)[which % len(self.trees)]]

    def rows(self) -> dict[int, Worktree]:
        return Worktree.objects.in_bulk()

    def observe(self, tree: Tree) -> None:
        """What is owed from now on: an agent, or the product for it, has made the worktree what it is."""
        if not tree.is_there:
            return
        tree.state = observing.look(tree.path)
        if tree.state.head:
            tree.commits.add(tree.state.head)

    def same(self, tree: Tree, what: str) -> None:
        """The worktree is in its place, and is what it was, also to git."""
        if tree.damaged or tree.state is None:
            return
        now = observing.look(tree.path)
        assert now.files == tree.state.files, f"{what}: {_other(now, tree.state)}"
        if not tree.unregistered:
            assert now.head == tree.state.head, f"{what}: another HEAD"
            assert now.said == tree.state.said, f"{what}: git says something else"

    @invariant()
    def no_byte_is_lost(self) -> None:
        """On the disk, or in an archive; and every commit still has something that leads to it."""
        self.seen["steps"] += 1
        away = [tree.away for tree in self.trees.values() if tree.away]
        below = self.repository.directory
        kept = observing.bytes_on_disk(
            below / "worktrees", below / "trash", paths.stray_directory(below), *away
        )
        owed: set[str] = set()
        for tree in self.trees.values():
            owed |= tree.aside
            if tree.state is not None:
                owed |= tree.state.blobs
        if owed - kept:
            kept |= observing.in_archives(self.clone)
        assert owed <= kept, f"lost: {self._whose(owed - kept)}"
        objects = {name for tree in self.trees.values() for name in tree.commits}
        for tree in self.trees.values():
            if tree.state is not None and not tree.unregistered:
                objects |= tree.state.staged
        assert not observing.missing(self.clone, objects)
        commits = {name for tree in self.trees.values() for name in tree.commits}
        lost = commits - observing.reachable(self.clone)
        assert not lost, f"nothing leads to commits any more: {lost}"

    def _whose(self, blobs: set[str]) -> list[str]:
        return [
            f"{tree.pk}: {path}"
            for tree in self.trees.values()
            if tree.state is not None
            for path, (_, blob) in tree.state.files.items()
            if blob in blobs
        ]

    @invariant()
    def what_is_ready_is_what_it_was(self) -> None:
        ready = Worktree.objects.filter(state="ready").values_list("pk", flat=True)
        for pk in ready:
            tree = self.trees.get(pk)
            if tree is not None and not tree.damaged and tree.state is not None:
                assert tree.is_there, f"{pk} is ready and not there"
                now = observing.look(tree.path)
                said = f"worktree {pk}: {_other(now, tree.state)}"
                assert now.files == tree.state.files, said

    @invariant()
    def what_is_held_is_there_and_locked(self) -> None:
        for row in Worktree.objects.held():
            tree = self.trees[row.pk]
            if not tree.damaged and not tree.unregistered:
                assert tree.is_there
                admin = registration(self.repository, tree.path)
                assert admin is not None
                assert (admin / "locked").exists()

    @invariant()
    def who_was_warned_was_told_once(self) -> None:
        told = Counter(
            Notification.objects.filter(topic=topics.PRUNE_PENDING.name).values_list(
                "data__worktree_id", flat=True
            )
        )
        assert told == Counter(
            {tree.pk: tree.warned for tree in self.trees.values() if tree.warned}
        )

    @invariant()
    def nothing_fired_and_nothing_leaked(self) -> None:
        mark = self.ground.mark
        assert not mark.exists(), mark.read_text()
        text = "\n".join(self.log.text)
        self.log.text.clear()
        assert deeds.SECRET not in text

    def stored(self) -> str:
        """Every row of every table."""
        with connection.cursor() as cursor:
            tables = set(connection.introspection.table_names(cursor)) - _KEPT_TABLES
            rows: list[str] = []
            for name in sorted(tables):
                cursor.execute(f'SELECT to_jsonb(t)::text FROM "{name}" AS t')
                rows += [text for (text,) in cursor.fetchall()]
        return "\n".join(rows)


def _other(now: State, then: State) -> dict[str, object]:
    """The paths that are not what they were, with what they are and were."""
    return {
        path: (now.files.get(path), then.files.get(path))
        for path in {*now.files, *then.files}
        if now.files.get(path) != then.files.get(path)
    }


def _emptied() -> None:
    with connection.cursor() as cursor:
        tables = set(connection.introspection.table_names(cursor)) - _KEPT_TABLES
        filled = []
        for name in sorted(tables):
            cursor.execute(f'SELECT EXISTS (SELECT FROM "{name}")')
            if cursor.fetchone() == (True,):
                filled.append(f'"{name}"')
        if filled:
            cursor.execute(f"TRUNCATE {', '.join(filled)} CASCADE")


DAY = dt.timedelta(days=1)
