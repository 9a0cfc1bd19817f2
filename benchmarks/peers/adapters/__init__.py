"""One file per queue: how a job is submitted, and what its worker runs. Nothing is measured here."""
