"""Bounds the rate of frames from a client over a WebSocket."""

from dataclasses import dataclass

FRAMES_PER_SECOND = 1_000


@dataclass(slots=True)
class FrameBudget:
    """The frames of a second may arrive at once; after that each waits for its share of a second.

    Frames are counted, not bytes: an empty one costs the server as much as any other, and its sender nothing.
    """

    left: float = FRAMES_PER_SECOND
    at: float = 0.0

    def spend(self, frames: int, now: float) -> None:
        self.left = min(FRAMES_PER_SECOND, self.left + (now - self.at) * FRAMES_PER_SECOND) - frames
        self.at = now

    def wait_seconds(self) -> float:
        """How long to wait before more is read; 0: not at all."""
        return max(0.0, -self.left / FRAMES_PER_SECOND)
