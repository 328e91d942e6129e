"""The bytes of attachments: checked, stored, swept and served."""
