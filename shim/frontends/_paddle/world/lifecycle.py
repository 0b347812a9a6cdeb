"""Asking about the world and its groups, and leaving them: the same in every version of paddle."""

from __future__ import annotations

from shim.frontends._paddle import tasks
from shim.frontends._paddle.errors import paddle_function
from shim.frontends._paddle.groups import group_views, membership
from shim.frontends._paddle.groups.group_views import Group
from shim.frontends._paddle.world.options import rank_in, size_of

_DESTROY = paddle_function("destroy_process_group")
_GET_BACKEND = paddle_function("get_backend")
_GET_RANK = paddle_function("get_rank")
_GET_WORLD_SIZE = paddle_function("get_world_size")


def is_available() -> bool:
    """Tell whether the frontend can be used, which is always so.

    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/is_available_en.html
    """
    return True


def is_initialized() -> bool:
    """Tell whether ``init_parallel_env`` was called and the world is there.

    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/is_initialized_en.html
    """
    return group_views.is_entered()


def destroy_process_group(group: Group | None = None) -> None:
    """Leave *group*; without one, or for the world, leave every group and end the initialisation.

    Raises: RuntimeError when not initialised; AssertionError for a group that was destroyed before.
    Deviates: after it, ``init_parallel_env`` initialises again.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/destroy_process_group_en.html
    """
    tasks.forget(group_views.destroy(_DESTROY, group))


def get_rank(group: Group | None = None) -> int:
    """Return the caller's rank in *group*, -1 outside it; without one in the world, before initialisation too.

    Deviates: before initialisation, it reads every launcher's environment, not only paddle's.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/get_rank_en.html
    """
    return rank_in(_GET_RANK, group)


def get_world_size(group: Group | None = None) -> int:
    """Return the number of *group*'s ranks, -1 outside it; without one the world's, before initialisation too.

    Deviates: before initialisation, it reads every launcher's environment, not only paddle's.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/get_world_size_en.html
    """
    return size_of(_GET_WORLD_SIZE, group)


def get_group(id: int = 0) -> Group | None:
    """Return the group with number *id*; warn and return None when there is none.

    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/get_group_en.html
    """
    return group_views.find(id)


def get_backend(group: Group | None = None) -> str:
    """Return the backend string that *group* (None: the world) was made with, in upper case.

    Raises: RuntimeError before initialisation, and outside *group*.
    See: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/get_backend_en.html
    """
    return membership.backend_of(_GET_BACKEND, group)
