"""How many frames a client may send over a WebSocket, whatever is in them."""

from dataclasses import dataclass

FRAMES_PER_SECOND = 1_000


@dataclass(slots=True)
class FrameBudget:
    """Frames of a second may come at once; then each has to wait for its share of a second.

    Frames are counted, not bytes: an empty one costs us as much as any other, and its sender nothing.
    """

    left: float = FRAMES_PER_SECOND
    at: float = 0.0

    def spend(self, frames: int, now: float) -> None:
        self.left = min(FRAMES_PER_SECOND, self.left + (now - self.at) * FRAMES_PER_SECOND) - frames
        self.at = now

    def wait_seconds(self) -> float:
        """Until more may be read; 0: at once."""
        return max(0.0, -self.left / FRAMES_PER_SECOND)
