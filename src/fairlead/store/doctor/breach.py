"""What the doctor reports, and how it compares what is there with what should be."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from fairlead.store.doctor.snapshot import Snapshot, join

#: (key, member) -> score
Members = dict[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class Breach:
    """An invariant that does not hold."""

    invariant: str
    sentence: str
    # Identifies the breach: unlike the sentence, it does not change with the numbers.
    about: str = field(repr=False)

    def printable(self) -> "Breach":
        """Bytes of a key that are no text are shown by their numbers."""
        if self.sentence.isascii():
            return self
        return replace(self, sentence=self.sentence.encode(errors="backslashreplace").decode())

    def same_as(self, other: "Breach") -> bool:
        return (self.invariant, self.about) == (other.invariant, other.about)


def members_of(snapshot: Snapshot, *names: str) -> Members:
    """The members of all sorted sets of these names."""
    return {
        (join(name, of), member): score
        for name in names
        for of, members in snapshot.sets.get(name, {}).items()
        for member, score in members.items()
    }


def differences(
    expected: Mapping[tuple[str, str], float], found: Mapping[tuple[str, str], float]
) -> Iterator[tuple[str, str, float | None, float | None]]:
    """(key, member, expected score, found score) where they differ; None: not there."""
    if expected == found:
        return
    for (key, member), score in expected.items():
        have = found.get((key, member))
        if have != score:
            yield key, member, score, have
    for (key, member), have in found.items():
        if (key, member) not in expected:
            yield key, member, None, have
