from __future__ import annotations

import pytest

from tests.workspaces.factories import ConversationFactory
from workspaces import attachments
from workspaces.models import Attachment


@pytest.fixture
def attachment(db: None) -> Attachment:
    """A file that no browser may run, with a name that has to be escaped."""
    return attachments.attach(
        ConversationFactory(),
        name="ä <b>.html",
        content=b"<script>alert(1)</script>",
        content_type="text/html",
    )
