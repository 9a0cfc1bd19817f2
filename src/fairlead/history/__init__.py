"""What has happened, in SQL: every event, and every task and job that the store may have forgotten."""
