"""What rounding the inputs of products costs the gradients of the tiny golden models: rounding.py

torch in float64, but for the inputs of products: on the way back all of them in bf16; forward in bf16 too, except those of
the named kinds, which keep tf32's eleven bits (the others cut off). Prints, for ten batches, the length of the difference of
all gradients to those without rounding, of their own length. Needs torch, transformers and safetensors.
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
    @staticmethod
    def forward(ctx, x, weight, bias, ahead, back):
        ctx.save_for_backward(back(x), back(weight))
        ctx.back = back
        return ahead(x) @ ahead(weight).T + bias

    @staticmethod
    def backward(ctx, d):
        x, weight = ctx.saved_tensors
        rounded = ctx.back(d)
        return rounded @ weight, rounded.flatten(0, -2).T @ x.flatten(0, -2), d.flatten(0, -2).sum(0), None, None


def exact(x):
    return x


def gradients(model, golden, number, ahead, back):
    """All gradients of a batch, those of key biases aside, which are exactly zero."""
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear):
            module.forward = lambda x, m=module, a=ahead(name): Linear.apply(x, m.weight, m.bias, a, back)
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
    for title, is_finer in KINDS.items():
        def ahead(name):
            return exact if is_finer is None else tf32 if is_finer(name) else bf16
        found = [gradients(model, golden, number, ahead, bf16) for number in range(10)]
        print(f"{name}, {title}:", " ".join(f"{(f - w).norm() / w.norm():.1e}" for f, w in zip(found, wanted)), flush=True)
