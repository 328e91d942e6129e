"""The rules: what agents, people, runners and misfortunes do, in whatever order."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import F
from django.db.models.functions import Now
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from tests.workspaces.modelled import deeds
from tests.workspaces.modelled.killing import killed_after
from tests.workspaces.modelled.misfortunes import Misfortunes
from tests.workspaces.modelled.stage import WHICH, Tree
from workspaces import fetch, holds, keeping, prune
from workspaces.archiving import lookup, restoring
from workspaces.models import Worktree, WorktreeArchive
from workspaces.pruning import warn
from workspaces.upkeep import reconcile

DAY = dt.timedelta(days=1)
BRANCHES = st.sampled_from(["acw/one", "acw/two", None])
HOLDERS = st.sampled_from(["ada", "bob"])
SOME_DEEDS = st.lists(
    st.sampled_from(sorted(deeds.DEEDS)), min_size=1, max_size=4, unique=True
)
MOSTLY = st.sampled_from([True, True, True, False])
STEPS = st.one_of(st.integers(0, 25), st.integers(0, 90))
KILLED = st.sampled_from(["archive", "restore", "acquire", "reconcile"])
_TIMES = (
    "last_used_at",
    "prune_warning_at",
    "kept_until",
    "held_since",
    "heartbeat_at",
    "lease_expires_at",
)


class Playing(Misfortunes):
    """Whatever is refused has to leave all as it was; what is done has to keep the invariants."""

    @initialize(
        require=st.booleans(),
        first=SOME_DEEDS,
        second=SOME_DEEDS,
        what=KILLED,
        steps=STEPS,
    )
    def begin(
        self,
        require: bool,
        first: list[str],
        second: list[str],
        what: str,
        steps: int,
    ) -> None:
        """Two that are worked in, warned of and pruned; one is had again, the other by who is killed."""
        self.require_warning = require
        settings.JOBS_WORKTREE_PRUNE_REQUIRE_WARNING = require
        for branch, some in (("acw/one", first), ("acw/two", second)):
            self.acquire(branch, "ada")
            self.do(len(self.trees) - 1, some)
        self.time_passes(28, True)
        self.time_passes(4, False)
        self.acquire_again(0, "ada")
        self.kill(1, what, steps)

    @rule(branch=BRANCHES, holder=HOLDERS)
    def acquire(self, branch: str | None, holder: str) -> None:
        self._acquired(
            self.tried(
                "acquire",
                lambda: holds.acquire(self.workspace, holder=holder, branch=branch),
            )
        )

    @rule(which=WHICH, holder=HOLDERS)
    def acquire_again(self, which: int, holder: str) -> None:
        tree = self.one(which)
        self._acquired(
            self.tried(
                "acquire again", lambda: holds.acquire_again(tree.pk, holder=holder)
            )
        )

    def _acquired(self, row: Worktree | None) -> None:
        if row is None:
            return
        tree = self.trees.setdefault(row.pk, Tree(row.pk, Path(row.path)))
        assert row.fencing_no > tree.fencing_no
        tree.fencing_no = row.fencing_no
        assert tree.is_there
        self._came_back(tree, "acquired")

    def _came_back(self, tree: Tree, what: str) -> None:
        self.no_byte_is_lost()
        self.same(tree, what)
        tree.damaged = tree.unregistered = False
        self.observe(tree)

    @rule(which=WHICH, late=st.booleans())
    def hold_on(self, which: int, late: bool) -> None:
        tree = self.one(which)
        number = tree.fencing_no - late
        done = self.tried(
            "heartbeat", lambda: holds.heartbeat(tree.pk, fencing_no=number)
        )
        assert done is None or not late
        if not done:
            self.tried("release", lambda: holds.release(tree.pk, fencing_no=number))

    @rule(which=WHICH, some=SOME_DEEDS)
    def do(self, which: int, some: list[str]) -> None:
        """Agents also go on in what they have let go of; of what an interruption left there, nobody was given anything."""
        tree = self.one(which)
        if not Worktree.objects.filter(pk=tree.pk, state="ready").exists():
            return
        for deed in some:
            if tree.is_there and tree.path.joinpath(".git").is_file():
                deeds.DEEDS[deed](tree.path)
                self.observe(tree)
                self.seen[deed] += 1

    @rule(which=WHICH, what=st.sampled_from(["keep", "pin", "unpin", "unpin"]))
    def decide(self, which: int, what: str) -> None:
        tree = self.one(which)
        self.tried(what, lambda: getattr(keeping, what)(tree.pk, actor="ada"))

    @rule(days=st.sampled_from([3, 28, 31, 31]), let_go=MOSTLY)
    def time_passes(self, days: int, let_go: bool) -> None:
        """Then the runners have their night. What was done in the worktrees until now was seen."""
        if let_go:
            for row in Worktree.objects.held():
                holds.release(row.pk)
        over = {name: F(name) - days * DAY for name in _TIMES}
        Worktree.objects.update(**over, use_seen_at=Now())
        self.seen["leases ended"] += holds.end_expired(settings.ACW_HOST)
        self._warn()
        for row in list(prune.due() | Worktree.objects.unfinished()):
            self._prune(row)

    def _warn(self) -> None:
        rows = Worktree.objects.filter(prune_warning_at__isnull=True)
        before = set(rows.values_list("pk", flat=True))
        warned, left = warn.warn_idle(threading.Event())
        assert not left
        after = Worktree.objects.filter(prune_warning_at__isnull=False, pk__in=before)
        newly = list(after.values_list("pk", flat=True))
        assert len(newly) == warned
        for pk in newly:
            self.trees[pk].warned += 1
            self.seen["warned"] += 1

    def _prune(self, row: Worktree) -> None:
        lead = settings.JOBS_WORKTREE_PRUNE_WARNING_LEAD
        warned = Worktree.objects.filter(
            pk=row.pk, prune_warning_at__lte=Now() - lead
        ).exists()
        interrupted = row.state != Worktree.State.READY
        outcome = self.tried("prune", lambda: prune.prune_worktree(row.pk))
        self.seen[f"pruned: {outcome}"] += 1
        if outcome is prune.Outcome.PRUNED:
            assert row.held_by is None
            assert not row.pinned
            assert warned or interrupted or not self.require_warning
            self._is_gone(row.pk)

    def _is_gone(self, pk: int) -> None:
        assert not Worktree.objects.filter(pk=pk).exists()
        tree = self.trees[pk]
        if not tree.damaged:
            assert not tree.is_there
            archive = lookup.latest(pk)
            assert archive is not None
            assert archive.state == WorktreeArchive.State.VERIFIED

    @rule(
        which=WHICH,
        let_go=MOSTLY,
        then=st.sampled_from(["", "restore", "restore", "acquire"]),
    )
    def archive_now(self, which: int, let_go: bool, then: str) -> None:
        tree = self.one(which)
        if let_go:
            self._let_go(tree)
        if self.tried(
            "archive now", lambda: prune.archive_worktree(tree.pk, actor="ada")
        ):
            self._is_gone(tree.pk)
        if then == "restore":
            self.restore(which)
        elif then == "acquire":
            self.acquire_again(which, "ada")

    def _let_go(self, tree: Tree) -> None:
        """So that nothing keeps it from being archived."""
        if Worktree.objects.held().filter(pk=tree.pk).exists():
            holds.release(tree.pk)
        Worktree.objects.filter(pk=tree.pk).update(pinned=False)

    @rule(which=WHICH)
    def restore(self, which: int) -> None:
        tree = self.one(which)
        was_there = Worktree.objects.filter(pk=tree.pk).exists()
        row = self.tried("restore", lambda: restoring.restore(tree.pk, actor="ada"))
        if row is None:
            return
        self.seen["restored"] += not was_there
        if was_there and tree.unregistered and tree.state is not None:
            # What git has forgotten gives way to its archive, and is put aside.
            tree.aside |= tree.state.blobs
            tree.state = None
        self._came_back(tree, "restored")

    @rule(which=WHICH)
    def plant(self, which: int) -> None:
        """Nothing runs, whatever is asked for meanwhile, and most is refused."""
        tree = self.one(which)
        deeds.plant(self.clone, self.ground.fires)
        for what, action in self._verbs(tree).items():
            self.tried(f"tampered: {what}", action)
        self.tried("tampered: fetch", lambda: fetch.fetch_workspace(self.workspace))
        self.nothing_fired_and_nothing_leaked()
        deeds.uproot(self.clone)
        self._note_hold(tree)

    @rule(fetches=st.booleans())
    def keep_up(self, fetches: bool) -> None:
        if fetches:
            rows = Worktree.objects.values_list("pk", "last_used_at").order_by("pk")
            used = list(rows)
            self.remote.push("more", deeds.new())
            self.tried("fetch", lambda: fetch.fetch_workspace(self.workspace))
            assert used == list(rows.all()), "a fetch is no use"
        report = self.tried("reconcile", lambda: reconcile.reconcile(force=True))
        for line in report.lines if report else []:
            self.seen[f"reconcile: {line.found.cell} {line.found.action}"] += 1

    def _verbs(self, tree: Tree) -> dict[str, Callable[[], Any]]:
        return {
            "archive": lambda: prune.archive_worktree(tree.pk, actor="ada"),
            "restore": lambda: restoring.restore(tree.pk, actor="ada"),
            "acquire": lambda: holds.acquire_again(tree.pk, holder="ada"),
            "reconcile": lambda: reconcile.reconcile(force=True),
        }

    @rule(
        which=WHICH,
        what=KILLED,
        steps=STEPS,
    )
    def kill(self, which: int, what: str, steps: int) -> None:
        tree = self.one(which)
        self._let_go(tree)
        if what in ("restore", "acquire"):
            self.archive_now(which, True, "")
        with killed_after(steps) as killer:
            self.tried(f"{what}, killed", self._verbs(tree)[what])
        self.seen[f"killed: {what}"] += killer.left == 0
        self._note_hold(tree)

    def _note_hold(self, tree: Tree) -> None:
        row = Worktree.objects.filter(pk=tree.pk).first()
        if row is not None:
            tree.fencing_no = row.fencing_no

    def everything_comes_back(self) -> None:
        """The last step: what was interrupted is finished, and what was pruned is restored and is what it was."""
        assert deeds.SECRET not in self.stored()
        for row in list(Worktree.objects.unfinished()):
            self._prune(row)
        reconcile.reconcile(force=True)
        for tree in self.trees.values():
            if tree.damaged or tree.state is None:
                continue
            self.seen["came back"] += 1
            if not Worktree.objects.filter(pk=tree.pk).exists():
                restoring.restore(tree.pk, actor="ada")
            row = Worktree.objects.get(pk=tree.pk)
            assert row.state == Worktree.State.READY, row.state_reason
            self._came_back(tree, "in the end")
