"""What layers of models compute: products, activations, losses."""

from __future__ import annotations

FUNCTIONS = {
    **{
        name: (
            f"torch.nn.functional.{name}(input:tensor)",
            f"paddle.nn.functional.{name}(x:tensor)",
            f"mindspore.ops.{name}(input:tensor)",
        )
        for name in ("gelu", "silu")
    },
    **{
        name: (
            f"torch.nn.functional.{name}(input:tensor, target, *, reduction='mean')",
            f"paddle.nn.functional.{name}(input:tensor, label:target, reduction='mean')",
            f"mindspore.ops.{name}(input:tensor, target, reduction='mean')",
        )
        for name in ("l1_loss", "mse_loss")
    },
    "bmm": (
        "torch.bmm(input:tensor, mat2:other)",
        "paddle.bmm(x:tensor, y:other)",
        "mindspore.ops.bmm(input_x:tensor, mat2:other)",
    ),
    "cosine_similarity": (
        "torch.nn.functional.cosine_similarity(x1, x2, dim:axis=1, eps=1e-08)",
        "paddle.nn.functional.cosine_similarity(x1, x2, axis=1, eps=1e-08)",
        "mindspore.ops.cosine_similarity(x1, x2, dim:axis=1, eps=1e-08)",
    ),
    "cross_entropy": (
        "torch.nn.functional.cross_entropy(input:tensor, target, weight=None, *, ignore_index=-100, reduction='mean', label_smoothing=0.0)",
        "paddle.nn.functional.cross_entropy(input:tensor, label:target, weight=None, ignore_index=-100, reduction='mean')",
        "mindspore.ops.cross_entropy(input:tensor, target, weight=None, ignore_index=-100, reduction='mean', label_smoothing=0.0)",
    ),
    "einsum": (
        "torch.einsum(equation, first, second=None, third=None)",
        "paddle.einsum(equation, first, second=None, third=None)",
    ),
    "embedding": (
        "torch.nn.functional.embedding(input:index, weight)",
        "paddle.nn.functional.embedding(x:index, weight)",
        "mindspore.ops.gather(input_params:weight, input_indices:index, axis:!0)",
    ),
    "log_softmax": (
        "torch.nn.functional.log_softmax(input:tensor, dim:axis)",
        "paddle.nn.functional.log_softmax(x:tensor, axis)",
        "mindspore.ops.log_softmax(logits:tensor, axis)",
        "torch.log_softmax(input:tensor, dim:axis)",
    ),
    "matmul": (
        "torch.matmul(input:tensor, other)",
        "paddle.matmul(x:tensor, y:other)",
        "mindspore.ops.matmul(input:tensor, other)",
        "mindspore.mint.matmul(input:tensor, other)",
    ),
    "mm": (
        "torch.mm(input:tensor, mat2:other)",
        "paddle.mm(input:tensor, mat2:other)",
        "mindspore.ops.mm(input:tensor, mat2:other)",
    ),
    "one_hot": (
        "torch.nn.functional.one_hot(input:tensor, num_classes)",
        "paddle.nn.functional.one_hot(x:tensor, num_classes).astype('int64')",
        "mindspore.ops.one_hot(indices:tensor, depth:num_classes)",
        "paddle.nn.functional.one_hot(x:tensor, num_classes)",
    ),
    "outer": (
        "torch.outer(input:tensor, vec2:other)",
        "paddle.outer(x:tensor, y:other)",
        "mindspore.ops.outer(input:tensor, vec2:other)",
    ),
    "relu": (
        "torch.nn.functional.relu(input:tensor)",
        "paddle.nn.functional.relu(x:tensor)",
        "mindspore.ops.relu(input:tensor)",
        "torch.relu(input:tensor)",
    ),
    "softmax": (
        "torch.softmax(input:tensor, dim:axis, *, dtype=None)",
        "paddle.nn.functional.softmax(x:tensor, axis=-1, *, dtype=None)",
        "mindspore.ops.softmax(input:tensor, axis=-1, *, dtype=None)",
        "torch.nn.functional.softmax(input:tensor, dim:axis, *, dtype=None)",
    ),
}

METHODS = {
    "bmm": ("torch mindspore: .bmm(mat2:other)", "paddle: .bmm(y:other)"),
    "matmul": ("torch mindspore: .matmul(other)", "paddle: .matmul(y:other)"),
    "relu": ("torch: .relu()", "paddle.nn.functional.relu(x:tensor)", "mindspore.ops.relu(input:tensor)"),
    "log_softmax": (
        "torch: .log_softmax(dim:axis)",
        "paddle.nn.functional.log_softmax(x:tensor, axis)",
        "mindspore.ops.log_softmax(logits:tensor, axis)",
    ),
    "softmax": (
        "torch: .softmax(dim:axis, *, dtype=None)",
        "paddle.nn.functional.softmax(x:tensor, axis, *, dtype=None)",
        "mindspore.ops.softmax(input:tensor, axis, *, dtype=None)",
    ),
}

DIFFERENCES = {
    "cross_entropy": (
        "paddle",
        "cross-entropy",
        "cross_entropy takes the last dimension for that of the classes in Paddle, where labels of -100 count in its mean; elsewhere it is the second one, and they do not count",
        "Nothing is to do for inputs of two dimensions without such labels.",
    ),
    "one_hot": (
        "from paddle",
        "one-hot-dtype",
        "one_hot is float32 in Paddle and int64 elsewhere",
        "Convert it where the code depends on its dtype.",
    ),
}
