"""What a duty says of one round."""

from dataclasses import dataclass

BATCH = 128  # what one act of the store does at most


@dataclass(frozen=True, slots=True)
class Report:
    done: int

    @property
    def more(self) -> bool:
        """The batch was full: there may be more to do at once."""
        return self.done >= BATCH
