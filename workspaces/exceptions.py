"""Everything that this app raises.

WorkspacesError
├── InvalidName              a workspace's or branch's name is refused
├── RefusedUrl               a remote's URL is refused
├── InvalidLease             no hold can last so long
├── WorkspaceError           something about a workspace as a whole
│   ├── NameTaken            another workspace has the name
│   ├── UnknownWorkspace     there is no such workspace
│   ├── WorkspaceInUse       it cannot be removed: held, or it has work that is nowhere else
│   ├── WrongHost            its clone lies on another host
│   ├── CloneMissing         its clone is not on the disk
│   ├── EmptyRepository      the remote has no commit yet
│   ├── RepositoryBusy       its lock was not free in time; try again later
│   ├── RemoteBusy           ACW_GIT_HOST_LIMIT fetches are under way from its remote's host; try again soon
│   ├── NotCloned            its clone is still being made, or could not be made
│   ├── ConfigTampered       its clone's configuration has keys that nobody approved
│   └── QuotaExceeded        it takes more space than ACW_WORKSPACE_HARD_LIMIT
├── WorktreeError            something about a worktree
│   ├── UnknownWorktree      there is no such worktree
│   ├── WorktreeHeld         somebody holds it
│   ├── WorktreeNotHeld      nobody holds it
│   ├── ForeignHold          somebody else holds it
│   ├── WorktreeBusy         it is being made or pruned; try again later
│   ├── BranchInUse          its branch is checked out somewhere else
│   ├── StaleHold            the hold that was named is over
│   └── WorktreeQuarantined  it was taken out of use; the message says why
├── ArchiveError             something about an archive
│   ├── UnknownArchive       there is none for this worktree
│   ├── ArchiveExpired       it was removed after its retention
│   ├── ArchiveDamaged       what is there is not what was archived; nothing is changed
│   ├── ArchiveTooLarge      there is more to archive than ACW_ARCHIVE_MAX_SIZE
│   └── NotArchivable        something of the worktree cannot be read or kept; nothing is removed
├── OutsideDataDirectory     a path is not where its row's own must be; nothing is touched
├── AttachmentError          an attachment is refused
├── StorageFailed            the attachments' storage did not take the bytes
└── GitError                 a git command did not do what it was asked
    ├── GitMissing           there is no git on this host
    ├── GitFailed            it ended with another exit status
    ├── GitTimeout           it took longer than allowed, and was ended
    ├── GitStopped           the caller wanted to stop, and it was ended
    ├── GitDamaged           it did it, and complained of damaged objects
    └── GitOutputTooLarge    it wrote more than is read, or than a file may have, and was ended
"""

from __future__ import annotations


class WorkspacesError(Exception):
    """Base of every error of this app; its text is one line and holds no secret."""


class InvalidName(WorkspacesError, ValueError):
    """A name is refused; the message says what is accepted."""


class RefusedUrl(WorkspacesError, ValueError):
    """A remote's URL is refused; the message says why and what to give instead."""


class InvalidLease(WorkspacesError, ValueError):
    """A lease is refused; the message says how long one can be."""


class WorkspaceError(WorkspacesError):
    """Something about a workspace as a whole."""


class NameTaken(WorkspaceError):
    """Another workspace has the name."""


class UnknownWorkspace(WorkspaceError, LookupError):
    """There is no such workspace."""


class WorkspaceInUse(WorkspaceError):
    """It cannot be removed: a worktree is held, or there is work that is nowhere else."""


class WrongHost(WorkspaceError):
    """Its clone lies on another host, where the command must be run."""


class CloneMissing(WorkspaceError):
    """Its clone is not on the disk."""


class EmptyRepository(WorkspaceError):
    """The remote has no commit yet, so there is nothing to check out."""


class RepositoryBusy(WorkspaceError):
    """The repository's lock was not free in time; try again later."""


class RemoteBusy(WorkspaceError):
    """As many fetches as ``ACW_GIT_HOST_LIMIT`` allows are under way from its remote's host; try again soon."""


class NotCloned(WorkspaceError):
    """Its clone is still being made, or could not be made; the message says which."""


class ConfigTampered(WorkspaceError):
    """Its clone's configuration has keys that could run or redirect something, and nobody approved them."""


class QuotaExceeded(WorkspaceError):
    """It takes more space than ``ACW_WORKSPACE_HARD_LIMIT``; nothing is deleted for that."""


class WorktreeError(WorkspacesError):
    """Something about a worktree."""


class UnknownWorktree(WorktreeError, LookupError):
    """There is no such worktree."""


class WorktreeHeld(WorktreeError):
    """Somebody holds it; the message names the holder."""


class WorktreeNotHeld(WorktreeError):
    """Nobody holds it, so there is nothing to let go."""


class ForeignHold(WorktreeError):
    """Somebody else holds it; the message names the holder."""


class WorktreeBusy(WorktreeError):
    """It is being made or pruned at this moment; try again later."""


class BranchInUse(WorktreeError):
    """Its branch is checked out somewhere else; git allows one worktree for a branch."""


class StaleHold(WorktreeError):
    """The hold that was named (by its fencing number) is over: somebody may have the worktree since."""


class WorktreeQuarantined(WorktreeError):
    """It was taken out of use; the message says why and what to do."""


class ArchiveError(WorkspacesError):
    """Something about an archive of a worktree."""


class UnknownArchive(ArchiveError, LookupError):
    """There is no archive of this worktree."""


class ArchiveExpired(ArchiveError):
    """The archive was removed after ``ACW_ARCHIVE_RETENTION``."""


class ArchiveDamaged(ArchiveError):
    """What is there is not what was archived; nothing is changed."""


class ArchiveTooLarge(ArchiveError):
    """There is more to archive than ``ACW_ARCHIVE_MAX_SIZE``; the worktree stays."""


class NotArchivable(ArchiveError):
    """Something of the worktree cannot be read or kept; the worktree stays."""


class OutsideDataDirectory(WorkspacesError):
    """A path is not where its row's own must be, or leads through a symbolic link."""


class AttachmentError(WorkspacesError, ValueError):
    """An attachment is refused; the message says why."""


class StorageFailed(WorkspacesError):
    """The attachments' storage did not take the bytes, so that nothing is recorded; try again later."""


class GitError(WorkspacesError):
    """A git command did not do what it was asked.

    ``verb`` is the subcommand (``fetch``); ``stderr`` is what it wrote, bounded, without control
    characters and credentials.
    """

    def __init__(self, verb: str, problem: str, *, stderr: str = "") -> None:
        self.verb = verb
        self.stderr = stderr
        said = _said(stderr)
        super().__init__(f"git {verb} {problem}{': ' + said if said else ''}")


class GitMissing(GitError):
    """There is no git on this host."""


class GitFailed(GitError):
    """It ended with an exit status that the caller does not accept; negative: by that signal."""

    def __init__(self, verb: str, status: int, *, stderr: str = "") -> None:
        self.status = status
        super().__init__(verb, f"failed (exit status {status})", stderr=stderr)


class GitTimeout(GitError):
    """It took longer than allowed; its whole process group was ended."""


class GitStopped(GitError):
    """The caller wanted to stop; its whole process group was ended."""


class GitDamaged(GitError):
    """It did what it was asked, and complained of damaged objects: those that came may not be whole."""


class GitOutputTooLarge(GitError):
    """It wrote more than is read, or than ``ACW_GIT_MAX_FILE``; its whole process group was ended."""


_BOILERPLATE = (
    "Please make sure you have the correct access rights",
    "and the repository exists.",
)
_SAID_LINES = 4
_SAID_LONGEST = 500


def _said(stderr: str) -> str:
    """What git wrote last, as one line: the cause often stands above its ``fatal:``."""
    told = [line.strip() for line in stderr.splitlines()]
    told = [line for line in told if line and line not in _BOILERPLATE]
    return " / ".join(told[-_SAID_LINES:])[-_SAID_LONGEST:]
