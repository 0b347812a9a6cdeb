"""sentence-transformers: losses whose negatives come from all ranks (gather_across_devices), on a tiny BERT that is made offline."""

from results import RANK, show

import os

import torch
import torch.distributed as dist
from sentence_transformers import SentenceTransformer, models
from sentence_transformers.losses import CachedMultipleNegativesRankingLoss, MultipleNegativesRankingLoss
from transformers import BertConfig, BertModel, BertTokenizer

dist.init_process_group("gloo")
folder = os.environ["REAL_PROGRAMS_RESULTS"] + "/bert"
os.makedirs(folder, exist_ok=True)
torch.manual_seed(4)
sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
bert = BertModel(BertConfig(vocab_size=35, hidden_dropout_prob=0, attention_probs_dropout_prob=0, **sizes))
if RANK == 0:
    with open(f"{folder}/vocab.txt", "w", encoding="utf-8") as file:
        file.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(30))]))
    BertTokenizer(f"{folder}/vocab.txt").save_pretrained(folder)
    bert.save_pretrained(folder)
dist.barrier()
word = models.Transformer(folder, max_seq_length=16)
model = SentenceTransformer(modules=[word, models.Pooling(word.get_word_embedding_dimension())], device="cpu")
texts = [[f"w{number + 7 * RANK} w{number + shift}" for number in range(6)] for shift in (1, 2)]
for kind in (MultipleNegativesRankingLoss, CachedMultipleNegativesRankingLoss):
    model.zero_grad()
    loss = kind(model, gather_across_devices=True)([model.tokenize(one) for one in texts], None)
    loss.backward()
    show(kind.__name__, [loss, *(parameter.grad for parameter in model.parameters() if parameter.grad is not None)])
dist.destroy_process_group()
