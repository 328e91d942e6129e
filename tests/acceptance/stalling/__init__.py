"""An app whose runners and parts tests can make hang, or end their process."""
