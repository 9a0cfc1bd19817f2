"""Live updates about tasks and jobs: messages, and feeds of them."""
