"""An app whose jobs book amounts to accounts, in tables that the test makes."""
