"""Twenty disasters that were reported of other tools that keep git worktrees for agents, and the tests that keep them away from this one.

Each is either a test of this module, ``test_NN_…``, named after its symptom, or one of another module, which stands in
``ELSEWHERE``. All of them are played with real git on a real clone.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.workspaces.conftest import make_idle
from tests.workspaces.remote import commit, git
from workspaces import prune
from workspaces.archiving import restoring
from workspaces.models import Worktree, WorktreeArchive
from workspaces.prune import Outcome
from workspaces.repository import Repository

ELSEWHERE: dict[int, tuple[str, dict[str, list[str]]]] = {
    2: (
        "branches that were never pushed go with their worktree",
        {
            "prune": ["directory_registration_and_row_go_and_branch_and_archive_stay"],
            "worktrees": ["forgetting_leaves_the_branch"],
        },
    ),
    3: (
        "a repair deletes a directory with work in it",
        {
            "checkouts": [
                "files_of_a_directory_that_git_has_forgotten_stay_in_place",
                "what_stands_in_its_place_is_put_aside_and_not_deleted",
            ],
            "upkeep/reconcile": [
                "rd_a_directory_that_git_has_forgotten_is_told_of_again"
            ],
        },
    ),
    4: (
        "a worktree is destroyed between two turns of its agent, and the next command runs elsewhere",
        {
            "holds_race": [
                "an_acquire_between_the_look_and_the_claim_wins",
                "acquire_and_prune_at_once_never_lose_a_held_worktree",
            ],
            "acquiring": ["a_command_in_a_directory_that_is_gone_is_run_nowhere_else"],
        },
    ),
    5: (
        "what is removed is, holds or lies inside a repository",
        {
            "removal": [
                "what_is_refused_and_what_is_not",
                "deleting_refuses_clones_and_what_lies_outside",
            ],
            "prune": ["a_root_swapped_for_a_link_empties_nothing"],
        },
    ),
    6: (
        "git worktree prune forgets bystanders, with their index and their rebase",
        {
            "worktrees": [
                "it_is_locked_against_prune_and_writes_no_configuration",
                "forgetting_one_leaves_others_whose_directory_is_away",
            ],
            "upkeep/reconcile": ["rdg_one_that_was_unlocked_is_locked_again"],
        },
    ),
    7: (
        "read-only directories and files of others stop a removal in the middle",
        {
            "removal": [
                "a_tree_goes_with_read_only_directories_and_nothing_behind_its_links",
                "what_another_user_owns_is_found_before_anything_is_deleted",
            ],
            "prune": [
                "deleting_goes_on_in_the_next_run_where_something_could_not_be_deleted"
            ],
        },
    ),
    8: (
        "a removal follows a link",
        {
            "removal": [
                "a_root_that_is_swapped_for_a_link_meanwhile_is_put_back",
                "a_parent_that_is_swapped_for_a_link_meanwhile_leads_nowhere",
            ],
            "prune": ["what_links_within_lead_to_is_left"],
        },
    ),
    11: (
        "a fetch that was killed leaves a lock that stops all later ones",
        {
            "stale_locks": [
                "each_kind_is_removed_at_its_age_and_not_before",
                "a_git_that_lives_keeps_them",
                "a_fetch_removes_what_stands_in_its_way_at_the_second_time",
            ]
        },
    ),
    12: (
        "a git that was killed leaves a lock of the index",
        {
            "archiving/snapshot": [
                "a_stale_lock_of_the_index_is_no_hindrance_and_not_archived"
            ],
            "checkouts": [
                "a_lock_on_the_index_that_somebody_left_stays_and_is_no_obstacle"
            ],
        },
    ),
    13: (
        "a repository's own configuration runs commands",
        {
            "seal_vectors": [
                "git_alone_runs_every_one_of_them",
                "nothing_runs_what_is_planted_and_approved",
                "nothing_works_on_what_is_planted_and_not_approved",
            ],
            "repository_hostile": ["nothing_in_the_clone_leads_a_fetch_elsewhere"],
        },
    ),
    14: (
        "a deadline ends git and leaves its ssh",
        {
            "git": ["one_that_takes_too_long_is_ended_with_all_its_children"],
            "git_hostile": ["ssh_that_leaves_a_process_behind_leaves_none"],
            "supervision": ["a_group_that_ignores_sigterm_is_killed"],
        },
    ),
    15: (
        "a fetch hangs on a question for a password",
        {
            "git_hostile": [
                "a_question_for_a_password_fails_and_asks_no_planted_program",
                "ssh_asks_nothing_and_trusts_no_unknown_host",
            ]
        },
    ),
    16: (
        "foo went and foo/bar came: fetches fail for ever",
        {"repository": ["a_branch_may_make_way_for_one_below_or_above_it"]},
    ),
    17: (
        "the default branch was renamed, and nothing can be acquired",
        {
            "default_branches": [
                "after_a_renaming_worktrees_are_acquired_as_before_and_it_is_told_once"
            ]
        },
    ),
    18: (
        "worktrees that are made at once fail each other",
        {
            "holds_race": [
                "48_in_processes_and_threads_get_a_worktree_each",
                "of_48_in_processes_and_threads_who_want_one_branch_one_gets_it",
            ],
            "worktrees": ["a_failed_checkout_takes_back_the_branch_it_made"],
        },
    ),
    19: (
        "a URL is an option of git, or a command",
        {
            "remotes": ["every_other_form_is_refused_and_no_secret_is_quoted"],
            "git_hostile": [
                "after_two_dashes_nothing_is_an_option",
                "protocols_that_are_not_allowed_are_refused_by_git_too",
            ],
        },
    ),
    20: (
        "tokens stand in errors and logs, and looking for them burns the processor",
        {
            "fetch": ["no_credential_of_the_remote_is_recorded_or_told"],
            "seal_vectors": ["secrets_that_git_tells_reach_nobody"],
            "presentable": [
                "a_known_secret_is_left_out_however_it_is_spelled",
                "no_text_costs_more_than_it_is_long",
            ],
        },
    ),
}


def test_each_of_the_twenty_has_its_test():
    here = {
        int(number)
        for number in re.findall(r"^def test_(\d\d)_", Path(__file__).read_text(), re.M)
    }
    missing = [
        (number, module, name)
        for number, (_, tested) in ELSEWHERE.items()
        for module, names in tested.items()
        for name in names
        if not _has(module, f"def test_{name}(")
    ]
    assert here | set(ELSEWHERE) == set(range(1, 21))
    assert missing == []


def _has(module: str, text: str) -> bool:
    *package, name = module.split("/")
    place = Path(__file__).parent.joinpath(*package)
    return any(text in found.read_text() for found in place.rglob(f"test_{name}.py"))


def test_01_an_old_worktree_goes_with_commits_that_only_its_head_had(
    worktree: Worktree, path: Path, repository: Repository
):
    git("checkout", "--quiet", "--detach", cwd=path)
    early = commit(path, "early.txt")
    git("checkout", "--quiet", "--detach", "HEAD~1", cwd=path)
    late = commit(path, "late.txt")
    (path / "plan.md").write_text("never committed\n")
    git("config", "status.showUntrackedFiles", "no", cwd=path)
    make_idle(worktree, days=31)

    assert prune.prune_worktree(worktree.pk) is Outcome.PRUNED
    git("reflog", "expire", "--expire=now", "--all", cwd=repository.path)
    git("gc", "--quiet", "--prune=now", cwd=repository.path)
    refs = git("for-each-ref", "--format=%(refname)", cwd=repository.path).split()
    archived = [ref for ref in refs if ref.startswith("refs/acw/archive/")]
    reached = git("rev-list", *archived, cwd=repository.path).split()
    assert {early, late} <= set(reached)
    restoring.restore(worktree.pk, actor="ada")
    assert git("rev-parse", "HEAD", cwd=path) == late
    assert (path / "plan.md").read_text() == "never committed\n"


def test_09_ignored_files_are_no_reason_to_delete_them(worktree: Worktree, path: Path):
    (path / ".gitignore").write_text(".env\n*.sqlite\n")
    commit(path, ".gitignore", ".env\n*.sqlite\n")
    (path / ".env").write_text("TOKEN=x\n")
    (path / ".env").chmod(0o600)
    (path / "db.sqlite").write_bytes(bytes(range(256)))
    make_idle(worktree, days=31)

    assert prune.prune_worktree(worktree.pk) is Outcome.PRUNED
    assert not path.exists()
    restoring.restore(worktree.pk, actor="ada")
    assert (path / ".env").read_text() == "TOKEN=x\n"
    assert (path / ".env").stat().st_mode & 0o777 == 0o600
    assert (path / "db.sqlite").read_bytes() == bytes(range(256))


def test_10_of_a_repository_within_only_its_name_is_kept(
    worktree: Worktree, path: Path
):
    inner, unborn = path / "vendor" / "inner", path / "begun"
    for directory in (inner, unborn):
        git("init", "--quiet", str(directory))
    kept = commit(inner, "committed.txt")
    (inner / "loose.txt").write_text("only here\n")
    (unborn / "first.txt").write_text("no commit yet\n")
    make_idle(worktree, days=31)

    assert prune.prune_worktree(worktree.pk) is Outcome.PRUNED
    archive = WorktreeArchive.objects.get(worktree_id=worktree.pk)
    restoring.restore(archive.worktree_id, actor="ada")
    assert git("rev-parse", "HEAD", cwd=inner) == kept
    assert git("status", "--porcelain", cwd=inner) == "?? loose.txt"
    assert (inner / "loose.txt").read_text() == "only here\n"
    assert git("status", "--porcelain", cwd=unborn) == "?? first.txt"
    assert (unborn / "first.txt").read_text() == "no commit yet\n"
