"""Make testdata/weights: one tiny random XLM-R, stored in every format that we read.

usage: make_weights_golden.py OUT_FOLDER      (needs torch, transformers, safetensors)

For each folder NAME there is a file NAME.f32 with the values that torch reads from the folder: the tensors of
XLMRobertaForMaskedLM in alphabetical order, as little-endian f32. The tests compare them bit for bit.
"""
import hashlib, json, pathlib, shutil, sys
import safetensors, torch, transformers
from safetensors.torch import load_file, save_file

SIZES = dict(vocab_size=11, hidden_size=6, num_hidden_layers=2, num_attention_heads=2, intermediate_size=10,
             max_position_embeddings=9, type_vocab_size=1, layer_norm_eps=1e-5)


def tiny():
    torch.manual_seed(20220522)
    model = transformers.XLMRobertaForMaskedLM(transformers.XLMRobertaConfig(**SIZES))
    for parameter in model.parameters():  # also biases and layer norms, whose initial values 0 and 1 would hide errors
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def write_expected(path, weights):
    with open(path, "wb") as file:
        for name in sorted(weights):
            file.write(weights[name].float().contiguous().numpy().tobytes())


def replace_weights(folder, weights):
    save_file({name: value.contiguous() for name, value in weights.items()}, folder / "model.safetensors",
              metadata={"format": "pt"})


def quantise(weights):
    """Write the format of the embedded model: matrices as int8 with one f32 scale per row, all other tensors as f16."""
    stored, expected = {}, {}
    for name, value in weights.items():
        if value.dim() == 2:
            scale = (value.abs().amax(1) / 127).float()
            stored[name] = torch.round(value / scale[:, None]).to(torch.int8)
            stored[name + ".scale"] = scale
            expected[name] = stored[name].float() * scale[:, None]
        else:
            stored[name] = value.half()
            expected[name] = stored[name].float()
    return stored, expected


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    model = tiny()
    for dtype, name in ((torch.float32, "f32"), (torch.float16, "f16"), (torch.bfloat16, "bf16")):
        tiny().to(dtype).save_pretrained(out / name)
        write_expected(out / f"{name}.f32", load_file(out / name / "model.safetensors"))
    weights = load_file(out / "f32" / "model.safetensors")

    model.save_pretrained(out / "sharded", max_shard_size="2KB")
    write_expected(out / "sharded.f32", weights)

    model.roberta.save_pretrained(out / "bare")
    write_expected(out / "bare.f32", {k: v for k, v in weights.items() if k.startswith("roberta.")})

    # As saved by transformers 2: the shared matrix is stored only under the name of the decoder, its bias is stored
    # twice, and the position ids are stored too.
    shutil.copytree(out / "f32", out / "decoder", dirs_exist_ok=True)
    old = dict(weights)
    old["lm_head.decoder.weight"] = old.pop("roberta.embeddings.word_embeddings.weight")
    old["lm_head.decoder.bias"] = old.pop("lm_head.bias")
    old["roberta.embeddings.position_ids"] = torch.arange(SIZES["max_position_embeddings"])[None]
    replace_weights(out / "decoder", old)
    write_expected(out / "decoder.f32", weights)

    shutil.copytree(out / "f32", out / "int8", dirs_exist_ok=True)
    stored, expected = quantise(weights)
    replace_weights(out / "int8", stored)
    write_expected(out / "int8.f32", expected)

    script = hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()
    (out / "provenance.json").write_text(json.dumps(dict(
        script="tools/make_weights_golden.py", sha256=script, torch=torch.__version__,
        transformers=transformers.__version__, safetensors=safetensors.__version__), indent=1) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
