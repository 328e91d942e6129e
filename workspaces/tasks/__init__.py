"""The task market: agents take tasks with deadlines, and deadline jobs drive what becomes of them."""
