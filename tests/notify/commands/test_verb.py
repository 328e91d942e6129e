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
