"""A clock that a test sets, in place of `monotonic`."""


class Now:
    def __init__(self) -> None:
        self.seconds = 1_234.567

    def __call__(self) -> float:
        return self.seconds
