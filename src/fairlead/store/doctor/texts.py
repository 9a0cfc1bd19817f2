"""Bytes as text and back: what is not UTF-8 is kept, so that the doctor can name it."""


def text_of(value: bytes) -> str:
    return value.decode(errors="surrogateescape")


def bytes_of(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def pairs_of(flat: list[bytes]) -> dict[str, str]:
    texts = [text_of(value) for value in flat]
    return dict(zip(texts[::2], texts[1::2], strict=True))
