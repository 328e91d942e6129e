"""The app with the job types that the benchmark drains."""
