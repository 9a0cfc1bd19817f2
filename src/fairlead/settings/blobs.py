"""Files of tasks: where they are kept, how much, and for how long."""

import re
from typing import Annotated

from msgspec import Meta

from fairlead.settings.base import Positive, Problem, Section, wrong

A_BUCKET = re.compile(r"s3://[A-Za-z0-9.-]+(/[A-Za-z0-9._/-]*)?")
A_FOLDER = re.compile(r"file:///.+")


class BlobSettings(Section, frozen=True):
    """Files that tasks refer to ([how](files.md)). Gateways, workers and programs that use the engine itself
    need the same `url`; those that use a gateway need none of this.
    """

    #: Where they are kept: a folder, or a bucket (which needs `pip install 'fairlead[s3]'`; credentials come
    #: from the environment, as in AWS_ACCESS_KEY_ID). By default `blobs` in the data folder of the engine.
    #: Example: "file:///srv/fairlead-blobs"
    url: str | None = None
    #: The largest file, in bytes.
    max_bytes: Positive = 64 * 1024 * 1024
    #: All files together, in bytes; more are refused.
    max_total_bytes: Positive = 10 * 1024 * 1024 * 1024
    #: How long a file is kept after it was uploaded or a task was submitted with it. It is never deleted
    #: while such a task waits or runs.
    keep_seconds: Annotated[float, Meta(ge=60)] = 86_400
    #: Uploads at once, of one server process; others wait for a moment.
    max_uploads: Positive = 16

    def problem(self) -> Problem | None:
        if self.url is None or A_BUCKET.fullmatch(self.url) or A_FOLDER.fullmatch(self.url):
            return None
        return wrong("url must be file:///PATH or s3://BUCKET/PREFIX, without a password", "url")
