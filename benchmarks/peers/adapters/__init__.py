"""One file per queue: how it is told to queue the job, and what its worker runs. Nothing is measured here."""
