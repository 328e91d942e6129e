"""When a workspace is fetched, what becomes of it, and how a damaged clone is healed."""
