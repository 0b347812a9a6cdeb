"""An example's tensors as another kind's: ``border`` is where they become that, on the way to the frontend and back, ``conversion`` how."""
