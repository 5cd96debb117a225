"""Compiles the kernels of `torch_kernels.py` for a GPU that need not be there, and says what came out.

Usage: compile_kernels.py CAPABILITY (80, 90, …)
"""
import re
import subprocess
import sys
import tempfile

import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas
from triton.compiler import ASTSource

from tocsin.tensors import torch_kernels, torch_triton


def compiled(kernel, signature, constants, capability):
    source = ASTSource(kernel, {**signature, **{name: "constexpr" for name in constants}}, constants,
                       {(number,): [["tt.divisibility", 16]] for number, kind in enumerate(signature.values()) if kind.startswith("*")})
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=dict(torch_triton.OPTIONS))


def main(capability):
    pointers = {"table": "*i64", "owner": "*i64", "partials": "*fp64", "tensors": "i32", "chunks": "i32"}
    for name, kinds in {"f32": 1, "f16": 1 | 2, "bf16": 1 | 4, "all": 0x1ffff}.items():
        made = compiled(torch_kernels.measure, pointers, {"KINDS": kinds, "CHUNK": torch_triton.CHUNK, "BLOCK": torch_triton.BLOCK,
                                                          "WIDE": torch_triton.WIDE_BLOCK}, capability)
        report(name, made)
    report("merge", compiled(torch_kernels.merge, {"table": "*i64", "partials": "*fp64", "out": "*fp64", "tensors": "i32", "chunks": "i32"},
                             {"BLOCK": torch_triton.MERGE_BLOCK}, capability))


def report(name, made):
    ptx = made.asm["ptx"]
    widths = [int(count) * int(bits) // 8 for count, bits in re.findall(r"ld\.global\S*\.v(\d)\.[bfu](\d+)", ptx)]
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        target = re.search(r"\.target (\w+)", ptx).group(1)
        done = subprocess.run([get_ptxas(made.metadata.target.arch).path, "-v", "--gpu-name", target, file.name, "-o", "/dev/null"], text=True, capture_output=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    spills = max(int(number) for number in re.findall(r"(\d+) bytes spill", said))
    registers = max(int(number) for number in re.findall(r"Used (\d+) registers", said))
    print(f"{name}: vectors {max(widths, default=0)}, spills {spills}, registers {registers}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
