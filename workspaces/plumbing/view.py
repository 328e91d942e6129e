"""A worktree under a configuration of ours, for the commands of git that read or write its files.

Such a command runs the filters that are configured, and no switch of git's is against all of them. Agents can configure one at
any moment, so that to look for them first would not do. Git gets another directory in the clone's place (``GIT_COMMON_DIR``,
see gitrepository-layout(5)): it leads to the clone's references and objects, and has a configuration that names no program.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workspaces import git
from workspaces.git import Result
from workspaces.plumbing.supervision import STDOUT_MOST

_CONFIG = """\
[core]
\trepositoryFormatVersion = 0
\tbare = true
\tlogAllRefUpdates = false
"""
_LED_TO = ("info", "logs", "objects", "packed-refs", "refs", "shallow")
# What decides how files are written and compared, and runs nothing.
_KEPT = (
    "core.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode|trustctime|checkstat"
    "|sparsecheckout|sparsecheckoutcone)"
)
_FILTER = "filter."
_ASKED = rf"^({_KEPT}|filter\..*\.(clean|smudge|process))$"


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """The worktree whose registration is ``admin`` and whose files are in ``files``.

    ``has_filters``: some are configured in the clone, so that its agents may see a file as unchanged that is another here, or
    the other way round.
    """

    admin: Path
    files: Path
    has_filters: bool
    _common: Path
    _config: Mapping[str, str]

    def run(
        self,
        arguments: Sequence[str],
        *,
        stop: Callable[[], bool] | None,
        accept: Collection[int] = (0,),
        most: int = STDOUT_MOST,
    ) -> Result:
        """Run a git command there, as :func:`workspaces.git.run` does; no filter is run."""
        return git.run(
            arguments,
            cwd=self.files,
            git_dir=self.admin,
            common=self._common,
            work_tree=self.files,
            config=self._config,
            stop=stop,
            accept=accept,
            most=most,
        )

    def refresh(
        self, *, stop: Callable[[], bool] | None, accept: Collection[int]
    ) -> None:
        """Have git read once more what counts as changed by its times alone, which every later look would do again."""
        self.run(["update-index", "-q", "--refresh"], stop=stop, accept=accept)


@contextlib.contextmanager
def opened(clone: Path, admin: Path, files: Path) -> Iterator[View]:
    """The view of the clone's worktree during the block. Raises :class:`~workspaces.exceptions.GitError` and OSError."""
    configured = _configured(admin)
    kept = {key: configured[key] for key in configured if not key.startswith(_FILTER)}
    # Never one that is there already: nobody knows its name.
    with tempfile.TemporaryDirectory(prefix="acw-view-") as made:
        common = Path(made)
        (common / "config").write_text(_CONFIG)
        for name in _LED_TO:
            (common / name).symlink_to(clone / name)
        yield View(
            admin=admin,
            files=files,
            has_filters=len(kept) < len(configured),
            _common=common,
            _config=kept,
        )


def _configured(admin: Path) -> dict[str, str]:
    """What the clone's configuration has of what is asked for, as seen from the worktree: it may have some of its own."""
    arguments = ["config", "--null", "--get-regexp", _ASKED]
    found = git.run(arguments, git_dir=admin, accept=(0, 1)).stdout
    entries = found.decode(errors="surrogateescape").split("\0")[:-1]
    pairs = (entry.partition("\n") for entry in entries)
    # A key without a value is a true one.
    return {key: value if is_set else "true" for key, is_set, value in pairs}
