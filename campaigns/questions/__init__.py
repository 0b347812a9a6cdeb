"""The questions of the frameworks' distributed and parallel modules, answered in their own worlds and in substituted programs."""
