"""An app with a job type that ends its process, in each way that a process can end."""
