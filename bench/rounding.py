"""Measures how rounding the operands of products changes the gradients of the tiny golden models: rounding.py

Computes in torch with float64 and rounds only the operands of matrix products. In the backward pass, all operands are
rounded to bf16. In the forward pass, the operands of the kinds of layers named in the output are truncated to the
eleven significant bits of tf32, and all other operands are rounded to bf16. For ten batches, prints the relative error
of all gradients: the norm of the difference from the unrounded gradients, divided by the norm of the unrounded
gradients. Needs torch, transformers and safetensors.
"""
import pathlib
import safetensors.torch, torch, transformers

FOLDER = pathlib.Path(__file__).parent.parent / "testdata" / "nn"
KINDS = {
    "nothing in tf32": lambda name: False,
    "around attention": lambda name: ".attention." in name,
    "feed-forward and head": lambda name: ".attention." not in name and "decoder" not in name,
    "all but the table": lambda name: "decoder" not in name,
    "all exact": None,
}


def bf16(x):
    return x.float().bfloat16().to(x.dtype)


def tf32(x):
    fraction, exponent = torch.frexp(x)
    return torch.ldexp(torch.trunc(fraction * 2.0**11), exponent - 11)


class Linear(torch.autograd.Function):
    """A linear layer whose operands are rounded."""

    @staticmethod
    def forward(ctx, x, weight, bias, round_forward, round_backward):
        ctx.save_for_backward(round_backward(x), round_backward(weight))
        ctx.round_backward = round_backward
        return round_forward(x) @ round_forward(weight).T + bias

    @staticmethod
    def backward(ctx, d):
        x, weight = ctx.saved_tensors
        rounded = ctx.round_backward(d)
        return rounded @ weight, rounded.flatten(0, -2).T @ x.flatten(0, -2), d.flatten(0, -2).sum(0), None, None


def exact(x):
    return x


def gradients(model, golden, number, forward_rounding, round_backward):
    """Returns all gradients of a batch except those of key biases, whose exact value is zero.

    `forward_rounding` takes the name of a layer and returns the rounding function for its forward pass.
    """
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear):
            module.forward = lambda x, m=module, r=forward_rounding(name): Linear.apply(
                x, m.weight, m.bias, r, round_backward)
    part = {key: golden[f"batch{number}.{key}"].long() for key in ("pieces", "lengths", "masked", "originals")}
    pieces = torch.nn.utils.rnn.pad_sequence(list(torch.split(part["pieces"], part["lengths"].tolist())),
                                             batch_first=True, padding_value=1)
    rows = torch.full_like(part["pieces"], -100)
    rows[part["masked"]] = part["originals"]
    labels = torch.full_like(pieces, -100)
    labels[pieces != 1] = rows
    model.zero_grad()
    model(input_ids=pieces, attention_mask=(pieces != 1).long(), labels=labels).loss.backward()
    named = [p for name, p in model.named_parameters() if not name.endswith("key.bias")]
    return torch.cat([p.grad.flatten() for p in named])


for name in ("odd", "deep"):
    golden = safetensors.torch.load_file(FOLDER / f"{name}.safetensors")
    model = transformers.XLMRobertaForMaskedLM.from_pretrained(FOLDER / name, attn_implementation="eager").double().eval()
    wanted = [gradients(model, golden, number, lambda _: exact, exact) for number in range(10)]
    for title, is_tf32 in KINDS.items():
        def forward_rounding(name):
            return exact if is_tf32 is None else tf32 if is_tf32(name) else bf16
        found = [gradients(model, golden, number, forward_rounding, bf16) for number in range(10)]
        print(f"{name}, {title}:", " ".join(f"{(f - w).norm() / w.norm():.1e}" for f, w in zip(found, wanted)), flush=True)
