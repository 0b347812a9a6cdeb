# ranks: 2
import paddle
import paddle.distributed as dist

dist.init_parallel_env()
rank = dist.get_rank()

sent = paddle.arange(4) + 10 * rank
received = paddle.empty([4], dtype="int64")
dist.alltoall_single(received, sent)
print(received)
# shows on rank 0: Tensor(shape=[4], dtype=int64, place=Place(cpu), stop_gradient=True,
#            [0 , 1 , 10, 11])
# shows on rank 1: [2, 3, 12, 13]
