"""Times N steps in PyTorch on the batch of bench_step.rs: torch_step.py SHAPE WHAT N. WHAT is one of

train-authors     the authors' public code: padded to 128, head and loss at every position, torch's Adam
train-best        the best that a user could write: padded to the longest sentence only, SDPA, head at the masked rows
                  only, fused AdamW
generate-authors  the authors' public code: padded to 128, loss and five best pieces at every position
generate-best     padded to the longest sentence only, SDPA, five best pieces at the masked rows only
ceiling           only the matrix products of a step

Runs in f32 with two threads, dropout and clipping. Prints one line for each measurement, which engine.py reads.
"""
import sys, time
import torch, transformers

LENGTHS = [64, 60, 56, 52, 48, 46, 44, 42, 40, 38, 36, 34, 32, 30, 28, 22]
BASE = dict(vocab_size=250015, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072,
            max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1)
SHAPES = {
    "base": BASE,
    "large": dict(BASE, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096),
    "mini": dict(BASE, vocab_size=50960, hidden_size=512, num_hidden_layers=6, num_attention_heads=8,
                 intermediate_size=2048, max_position_embeddings=258),
}


def batch(n_pieces, width):
    """Returns the sentences of bench_step.rs padded to `width`, the attention mask, the indices of the masked rows
    among the rows that are not padding, and the original pieces of the masked rows."""
    rows = [[5 + (key * 7919 + i * 104729) % (n_pieces - 5) for i in range(n)] for key, n in enumerate(LENGTHS)]
    padded = torch.tensor([row + [1] * (width - len(row)) for row in rows])
    pieces = torch.tensor(sum(rows, []))
    masked = torch.tensor([row for row in range(len(pieces)) if row % 20 in (3, 9, 16)])
    return padded, padded != 1, masked, pieces[masked]


def timed(n, step):
    for index in range(n + 2):
        start = time.perf_counter()
        step()
        if index > 1:  # the first step allocates and compiles; in the second, the tuned allocator still grows
            print(f"seconds {time.perf_counter() - start:.4f}", flush=True)


def model_of(shape):
    config = transformers.XLMRobertaConfig(**SHAPES[shape], attn_implementation="sdpa")
    return transformers.XLMRobertaForMaskedLM(config)


def finish(model, optimiser, loss):
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)


def train_authors(shape, n):
    model = model_of(shape).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-5)
    padded, real, _, _ = batch(model.config.vocab_size, 128)
    mask = real.long()
    # As in the authors' trainer.py, the loss covers every position, including padding.
    timed(n, lambda: finish(model, optimiser, model(padded, mask, labels=padded, output_hidden_states=True).loss))


def masked_logits(model, padded, real, masked):
    hidden = model.roberta(input_ids=padded, attention_mask=real.long()).last_hidden_state
    return model.lm_head(hidden[real][masked])


def train_best(shape, n):
    model = model_of(shape).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    padded, real, masked, originals = batch(model.config.vocab_size, max(LENGTHS))

    def step():
        logits = masked_logits(model, padded, real, masked)
        finish(model, optimiser, torch.nn.functional.cross_entropy(logits, originals))
    timed(n, step)


@torch.inference_mode()
def generate_authors(shape, n):
    model = model_of(shape).eval()
    padded, real, _, _ = batch(model.config.vocab_size, 128)
    mask = real.long()
    # As in the authors' generate.py for entities: labels are passed, so that the loss is computed too, and the five
    # best pieces are found at every position. The authors' second pass, which masks context, is not measured.
    timed(n, lambda: torch.topk(model(padded, mask, labels=padded).logits, k=5, dim=-1))


@torch.inference_mode()
def generate_best(shape, n):
    model = model_of(shape).eval()
    padded, real, masked, _ = batch(model.config.vocab_size, max(LENGTHS))
    timed(n, lambda: masked_logits(model, padded, real, masked).log_softmax(-1).topk(5))


@torch.inference_mode()
def ceiling(shape, n):
    sizes = SHAPES[shape]
    rows, n_masked = sum(LENGTHS), len(batch(sizes["vocab_size"], max(LENGTHS))[2])
    hidden, inner = sizes["hidden_size"], sizes["intermediate_size"]
    for what, m, k, o in [("qkv", rows, hidden, 3 * hidden), ("output", rows, hidden, hidden), ("up", rows, hidden, inner),
                          ("down", rows, inner, hidden), ("head", n_masked, hidden, sizes["vocab_size"])]:
        x, w, y = torch.rand(m, k), torch.rand(o, k), torch.rand(m, o)
        for product, out, run in [("Forward", torch.empty(m, o), lambda out: torch.mm(x, w.T, out=out)),
                                  ("Backward", torch.empty(m, k), lambda out: torch.mm(y, w, out=out)),
                                  ("Weights", torch.empty(o, k), lambda out: torch.mm(y.T, x, out=out))]:
            for _ in range(n + 1):
                start = time.perf_counter()
                run(out)
                print(f"gflops {what} {product} {2 * m * k * o / (time.perf_counter() - start) / 1e9:.1f}")


def main(shape, what, n):
    torch.set_num_threads(2)
    torch.manual_seed(1)
    globals()[what.replace("-", "_")](shape, n)
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(f"peak_kib {peak.split()[1]}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
