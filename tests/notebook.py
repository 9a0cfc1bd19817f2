"""Runs a cell of a notebook in a Jupyter kernel and prints what it shows: `python notebook.py FILE`"""

import sys
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

from jupyter_client.manager import start_new_kernel


def show(message: dict[str, Any]) -> None:
    content = message["content"]
    if message["msg_type"] == "stream" and content["name"] == "stdout":
        print(content["text"], end="")
    elif message["msg_type"] == "execute_result":
        print(content["data"]["text/plain"])
    elif message["msg_type"] == "error":
        print(content["ename"], content["evalue"])


def main() -> None:
    manager, client = start_new_kernel(stderr=DEVNULL)
    try:
        client.execute_interactive(Path(sys.argv[1]).read_text(), output_hook=show, timeout=60)
    finally:
        client.stop_channels()
        manager.shutdown_kernel()


if __name__ == "__main__":
    main()
