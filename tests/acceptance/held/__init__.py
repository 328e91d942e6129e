"""An app with job types that do what a test tells them through files."""
