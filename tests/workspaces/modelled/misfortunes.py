"""What befalls worktrees from outside: by whoever owns the disk, or works in the clone."""

from __future__ import annotations

import os
import shutil

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.workspaces.modelled import deeds, observing
from tests.workspaces.modelled.stage import WHICH, Stage
from workspaces.worktrees import registration


class Misfortunes(Stage):
    """What whoever does it destroys is not owed any more; what is left still is."""

    @rule(which=WHICH, what=st.sampled_from(["directory", "registration", "move"]))
    def befall(self, which: int, what: str) -> None:
        tree = self.one(which)
        admin = registration(self.repository, tree.path)
        if what == "directory" and tree.is_there:
            # By whoever owns the disk; what git has staged or committed for it stays owed.
            shutil.rmtree(tree.path)
            tree.damaged = True
            if tree.state is not None:
                tree.state = observing.State(
                    files={}, said="", head="", staged=tree.state.staged
                )
        elif what == "registration" and admin is not None:
            # Its index and the log of its HEAD go with it; its files do not.
            shutil.rmtree(admin)
            tree.unregistered = True
            tree.commits &= observing.reachable(self.clone)
        elif what == "move" and tree.away is None and tree.is_there:
            tree.away = self.directory / f"away-{tree.pk}"
            os.rename(tree.path, tree.away)
            tree.damaged = True
        elif what == "move" and tree.away and not os.path.lexists(tree.path):
            os.rename(tree.away, tree.path)
            tree.away = None
        else:
            return
        self.seen[f"befell: {what}"] += 1

    @rule(branch=st.sampled_from(["acw/one", "acw/two", None]))
    def work_in_the_clone(self, branch: str | None) -> None:
        """A branch is moved, by whoever works in the clone, or all that nothing leads to is collected."""
        if branch is None:
            deeds.collect(self.clone)
            return
        ref = f"refs/heads/{branch}"
        if observing.git("rev-parse", "--verify", "--quiet", ref, cwd=self.clone):
            observing.git("update-ref", ref, "refs/remotes/origin/main", cwd=self.clone)
            for tree in self.trees.values():
                if tree.is_there:
                    self.observe(tree)
