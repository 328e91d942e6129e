from __future__ import annotations

from pathlib import Path

import pytest

from workspaces.tasks import diagram
from workspaces.tasks.states import Action, Status, Template
from workspaces.tasks.transitions import TRANSITIONS

ROOT = Path(__file__).resolve().parents[3]


def part(template: Template) -> list[str]:
    """The arrows of a template's diagram."""
    text = diagram.drawn().split(f"A `{template}` task:", 1)[1].split("```")[1]
    assert text.startswith("mermaid\nstateDiagram-v2\n    direction LR\n")
    return [line.strip() for line in text.splitlines()[3:]]


def test_the_page_has_what_is_in_the_table():
    page = (ROOT / "docs/tasks.md").read_text()
    assert diagram.placed(page) == page, (
        "run `manage.py task diagram --write docs/tasks.md`"
    )


def test_each_row_is_a_line_of_the_table():
    lines = [line for line in diagram.drawn().splitlines() if line.startswith("|")]
    assert len(lines) == len(TRANSITIONS) + 2
    assert all(line.count("|") == lines[0].count("|") for line in lines)
    assert (
        "| `checkpoint_miss` | worker | `held` | `held` | | | `checkpoint_due_at` | another may be missed "
        "| `task.checkpoint_missed` | publisher, holder |" in lines
    )


def test_a_direct_task_is_held():
    arrows = part(Template.DIRECT)
    assert "[*] --> open: publish" in arrows
    assert "open --> held: take" in arrows
    assert "held --> open: checkpoint_miss, hold_timeout, give_back" in arrows
    assert not any("contest_close" in arrow for arrow in arrows)
    inside = [arrow for arrow in arrows if arrow.startswith("held: ")]
    assert inside[:2] == ["held: held", "held: use_worktree"]
    assert not any("held --> held" in arrow for arrow in arrows)


def test_a_contest_is_never_held():
    arrows = part(Template.CONTEST)
    assert "open --> reviewing: contest_close" in arrows
    assert not any("held" in arrow for arrow in arrows)


def test_every_status_and_action_is_drawn():
    arrows = "\n".join(part(Template.DIRECT) + part(Template.CONTEST))
    for name in [*Status, *Action]:
        assert name in arrows


def test_it_is_written_between_the_two_comments_alone(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(f"é before\n\n{diagram.BEGIN}\nstale\n{diagram.END}\n\nafter \\1\n")
    assert diagram.write(page)
    assert page.read_text() == (
        f"é before\n\n{diagram.BEGIN}\n\n{diagram.drawn()}\n\n{diagram.END}\n\nafter \\1\n"
    )
    assert not diagram.write(page)


@pytest.mark.parametrize(
    "text",
    [
        "",
        diagram.BEGIN,
        f"{diagram.END}\n{diagram.BEGIN}",
        f"{diagram.BEGIN}\n{diagram.END}\n" * 2,
    ],
)
def test_a_page_without_its_place_is_refused(text: str, tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ValueError, match="once and in this order"):
        diagram.write(page)
    assert page.read_text() == text
