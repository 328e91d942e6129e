"""Which commits and objects an archive has to hold on to, so that no ``gc``, ``branch -D`` or expired log loses any of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workspaces.archiving.store import Store, parents_in
from workspaces.exceptions import ArchiveTooLarge, GitFailed, NotArchivable

NAMED_MOST = 200_000
"""Moves of HEAD and other names of objects that are looked at."""

_LISTING_MOST = 256 * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Roots:
    """``parents`` lead to all commits that there are to keep; ``objects`` are trees and blobs with their types, ``tags`` annotated tags."""

    parents: tuple[str, ...]
    objects: dict[str, str]
    tags: tuple[str, ...]


def of(store: Store, named: set[str], *, head: str, has_index: bool) -> Roots:
    """What of ``named`` is there and is no part of another; with the index of ``store``, what is in that only.

    What is named and not there is lost already. Raises :class:`~workspaces.exceptions.ArchiveTooLarge` and ``NotArchivable``.
    """
    if len(named) > NAMED_MOST:
        raise ArchiveTooLarge(
            f"its logs name {len(named)} commits, more than {NAMED_MOST}; shorten them with `git reflog expire`"
        )
    kinds = store.kinds(sorted(named))
    tags = {name for name, kind in kinds.items() if kind == "tag"}
    commits = {name for name, kind in kinds.items() if kind == "commit"}
    commits |= _tagged(store, tags)
    objects = {name: kind for name, kind in kinds.items() if kind in {"tree", "blob"}}
    if has_index:
        only = only_in_index(store, head)
        objects |= store.kinds(sorted(only))
    return Roots(
        parents=_independent(store, commits, head=head),
        objects=objects,
        tags=tuple(sorted(tags)),
    )


def _tagged(store: Store, tags: Iterable[str]) -> set[str]:
    """The commits that these annotated tags lead to."""
    return set(store.kinds(f"{tag}^{{commit}}" for tag in tags))


def only_in_index(store: Store, head: str) -> set[str]:
    """The trees and blobs of the index, also conflicting and merely intended ones, that HEAD's commit has not."""
    arguments = ["--objects", "--no-object-names", "--missing=print"]
    try:
        listed = store.run(
            "rev-list",
            *arguments,
            "--indexed-objects",
            "--single-worktree",
            "--",
            most=_LISTING_MOST,
        ).stdout.decode()
    except GitFailed as error:
        raise NotArchivable(
            f"its index cannot be read ({error}); mend it, or remove it"
        ) from error
    found = {name for name in listed.split() if not name.startswith("?")}
    return found - _of_commit(store, head) if head else found


def _of_commit(store: Store, commit: str) -> set[str]:
    """Every tree and blob of the commit's files."""
    listed = store.run(
        "ls-tree", "-r", "-t", "-z", "--full-tree", commit, most=_LISTING_MOST
    ).stdout
    top = store.run("rev-parse", "--verify", f"{commit}^{{tree}}").stdout.decode()
    names = {
        line.split(b" ", 3)[2][:40].decode() for line in listed.split(b"\0") if line
    }
    return {top.strip(), *names}


def _independent(store: Store, commits: set[str], *, head: str) -> tuple[str, ...]:
    """HEAD's commit, and those that no other one leads to; in an order that depends on them only."""
    first = (head,) if head else ()
    others = commits - {head}
    if not others:
        return first
    asked = [*sorted(others), *(f"^{name}" for name in first)]
    try:
        listed = store.run(
            "rev-list",
            "--parents",
            "--stdin",
            stdin="".join(f"{name}\n" for name in asked).encode(),
            most=_LISTING_MOST,
        ).stdout
    except GitFailed as error:
        raise NotArchivable(
            f"where its commits come from cannot be read ({error}); fetch what is missing from a repository that has it"
        ) from error
    parents = parents_in(listed)
    reached = set().union(*parents.values())
    return (*first, *sorted((others & parents.keys()) - reached))
