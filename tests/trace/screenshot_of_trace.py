"""``PYTHONPATH=tests python screenshot_of_trace.py PAGE PICTURE``: a page that ``shim trace show --page`` wrote, with a call chosen."""

from __future__ import annotations

import sys
from pathlib import Path

from chromium import Chromium


def main(page: Path, picture: Path) -> None:
    """Zoom in, choose the second call of rank 0, and take the picture."""
    with Chromium((1200, 780)) as browser:
        browser.open(page)
        for key in ("+", "+", "+", "ArrowRight", "ArrowRight"):
            browser.press(key)
        picture.write_bytes(browser.screenshot())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
