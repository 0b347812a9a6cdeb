"""``PYTHONPATH=tests python screenshot.py PAGE PICTURE``: what a page that ``shim conformance --html`` wrote looks like, with a cell of our own cases open.

The upper half is the table in light colours, the lower one the open cell in dark ones.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

from chromium import Chromium

_SIZE = (1200, 640)  # pixels of each half
_CASE = "torch.distributed.all_to_all: unequal parts"


def main(page: Path, picture: Path) -> None:
    """Take both halves in a browser, and put them together in it."""
    with Chromium(_SIZE) as browser:
        browser.open(page)
        light = browser.screenshot()
        browser.use_scheme(dark=True)
        browser.click(f"tr[data-name={json.dumps(_CASE)}] button")
        dark = browser.screenshot()
        width, height = _SIZE
        browser.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=2 * height, deviceScaleFactor=1, mobile=False
        )
        browser.show(f"<body style='margin:0'>{_image(light)}{_image(dark)}</body>")
        picture.write_bytes(browser.screenshot())


def _image(png: bytes) -> str:
    return f"<img style='display:block' src='data:image/png;base64,{base64.b64encode(png).decode()}'>"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
