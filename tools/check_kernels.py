#!/usr/bin/env python3
"""Compile the CUDA kernels with NVRTC, without a GPU. Prints the registers, the stack and the spills of each kernel.

    pip install nvidia-cuda-nvrtc-cu12
    python3 tools/check_kernels.py [--nvrtc libnvrtc.so.12] [HEAD_SIZE=64 HIDDEN=768 ROTARY=1 …]

Fails if a kernel does not compile or spills registers to memory, or if a kernel of attention has arrays on the stack. Check
heads of 80 and 96 columns too. `--nvrtc` names the library, for other versions of CUDA (such as 11.8, in the package
nvidia-cuda-nvrtc-cu11). Without it, the installed package is used. Name the folder of the library in LD_LIBRARY_PATH if the
library does not find its builtins.
"""
import argparse
import ctypes
import re
import sys
from pathlib import Path

KERNELS = Path(__file__).parent.parent / "crates/melm-nn/src/cuda/kernels"
# The constants that `program.rs` defines: the shape of XLM-R base.
CONSTANTS = {"HIDDEN": 768, "HEAD_SIZE": 64, "BF16": 1, "CHECKED": 0, "ROTARY": 0, "WINDOWED": 0, "NORM_BIAS": 1}
# The stack that cosf and sinf use for large angles, in bytes.
MAX_STACK = 32


def compile_kernels(nvrtc, path, constants):
    """Return True if a source file compiles, and the messages of the compiler."""
    headers = ["common.cuh"] + (["heads.cuh"] if "attention" in path.name else [])
    headers += ["tensor.cuh"] if path.name == "tensor_attention.cu" else []
    parts = [KERNELS / name for name in headers] + [path]
    text = "\n".join(f'#line 1 "{part.name}"\n{part.read_text()}' for part in parts)
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), path.name.encode(), 0, None, None)
    options = ["--gpu-architecture=sm_90", "--std=c++17", "--ptxas-options=-v"]
    options += [f"-D{name}={value}" for name, value in constants.items()]
    array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    is_compiled = nvrtc.nvrtcCompileProgram(program, len(options), array) == 0
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    return is_compiled, log.value.decode()


def installed_nvrtc():
    """Return the path of the library in the installed package."""
    import nvidia.cuda_nvrtc

    return str(next((Path(nvidia.cuda_nvrtc.__path__[0]) / "lib").glob("libnvrtc.so.*")))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nvrtc", help="the path of the NVRTC library")
    parser.add_argument("constants", nargs="*", metavar="NAME=VALUE", help="for example HEAD_SIZE=64")
    arguments = parser.parse_args()
    constants = CONSTANTS | dict(constant.split("=") for constant in arguments.constants)
    nvrtc = ctypes.CDLL(arguments.nvrtc or installed_nvrtc())
    is_good = True
    for path in sorted(KERNELS.glob("*.cu")):
        is_compiled, log = compile_kernels(nvrtc, path, constants)
        is_good &= is_compiled
        if not is_compiled:
            print(f"{path.name} does not compile:\n{log}")
        names = re.findall(r"entry function '(\w+)'", log)
        used = re.findall(r"Used (\d+) registers", log)
        stacks = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores", log)
        for name, n_registers, (n_stack, n_spilled) in zip(names, used, stacks, strict=True):
            print(f"{path.name:20} {name:26} {n_registers:>4} registers, {n_stack} bytes of stack, {n_spilled} spilled")
            has_arrays = "attention" in name and int(n_stack) > MAX_STACK
            is_good &= n_spilled == "0" and not has_arrays
    return not is_good


if __name__ == "__main__":
    sys.exit(main())
