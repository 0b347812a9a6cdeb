"""An engine with nothing but the defaults, over the messages and the agreement of another engine.

Do not use it for work: it shows that an engine needs no more, and tests compare other engines with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shim.core.engines.layer import Layer

if TYPE_CHECKING:
    from shim.core.engines.base import Engine
    from shim.core.engines.place import Place


class PlainEngine(Layer):
    """Has the defaults for all collectives; *under* serves the same group."""

    name = "plain"

    def __init__(self, place: Place, under: Engine) -> None:
        super().__init__(under, place.rank, len(place.ranks))
