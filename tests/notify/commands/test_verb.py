from __future__ import annotations

import pytest
from django.core.management import CommandError

from tests.notify.commands.calling import webhook
from tests.notify.factories import EndpointFactory

pytestmark = pytest.mark.django_db
URL = "https://hooks.example/T000/SECRET-TOKEN"


def test_a_name_that_there_is_not_is_a_wrong_call():
    EndpointFactory(name="chat")

    with pytest.raises(CommandError, match="no endpoint 'chta'; there are: chat") as no:
        webhook("test", "chta")

    assert no.value.returncode == 2


@pytest.mark.parametrize("name", ["ch\udce9t", "ch\0t"], ids=ascii)
def test_a_name_that_is_no_text_is_one_that_there_is_not(name: str):
    """A shell that does not speak UTF-8 hands over the like."""
    with pytest.raises(CommandError, match=r"no endpoint 'ch.*t'; there are: none"):
        webhook("test", name)
