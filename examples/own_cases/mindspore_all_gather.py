# ranks: 2
import mindspore
from mindspore.mint.distributed import all_gather_into_tensor, get_rank, get_world_size, init_process_group

init_process_group()
mine = mindspore.Tensor([get_rank(), 10.0 * get_rank()])
output = mindspore.Tensor([0.0] * 2 * get_world_size())
all_gather_into_tensor(output, mine)
print(output)
# shows: [ 0.  0.  1. 10.]
all_gather_into_tensor("a text", mine)  # raises TypeError
