"""Ctrl-C, and memory over many calls."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from conftest import FAST, TRAIN, parse, results

import melm

LONG = {**FAST, "finetune__budget": "3000 epochs"}

# The tests may run in the background of a shell, whose processes ignore Ctrl-C.
SCRIPT = """
import signal, sys, melm
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    melm.augment("train.conll", model=sys.argv[1], folder=sys.argv[2], **eval(sys.argv[3]))
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_stops_within_a_second_and_the_same_call_resumes(corpus: pathlib.Path, model: str) -> None:
    words = [sys.executable, "-c", SCRIPT, model, "stopped", repr(LONG)]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    started = corpus / "stopped/.stages/finetune/metrics.jsonl"
    deadline = time.monotonic() + 60
    while not started.exists():
        assert child.poll() is None and time.monotonic() < deadline, "the run did not start, or ended too soon"
        time.sleep(0.005)
    child.send_signal(signal.SIGINT)
    sent = time.monotonic()
    output, _ = child.communicate(timeout=60)
    assert output == "stopped\n" and child.returncode == 0
    assert time.monotonic() - sent < 1.0
    assert (corpus / "stopped/.unfinished/key").exists() and not (corpus / "stopped/run.json").exists()
    resumed = melm.augment("train.conll", model=model, folder="stopped", **LONG)
    whole = melm.augment("train.conll", model=model, folder="whole", **LONG)
    assert results(corpus / "stopped") == results(corpus / "whole") and resumed.dataset == whole.dataset


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_a_second_ctrl_c_ends_the_process_at_once(corpus: pathlib.Path, model: str) -> None:
    # A pipe that nobody writes to. The worker waits for it and cannot stop.
    os.mkfifo(corpus / "names.txt")
    settings = repr({**FAST, "names": {"PER": "names.txt"}})
    words = [sys.executable, "-c", "print('started', flush=True)\n" + SCRIPT, model, "waits", settings]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "started\n"
    time.sleep(3)
    child.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(timeout=1)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=10) == 130


def resident_bytes() -> int:
    """The memory of this process."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads /proc")
def test_memory_is_flat_over_a_hundred_calls(corpus: pathlib.Path, model: str) -> None:
    pairs = parse(TRAIN)
    tagger = melm.Tagger.train(pairs, model=model, tagger__budget="2 updates", device="cpu", progress=False)
    tokens = [tokens for tokens, _ in pairs]

    def call() -> None:
        melm.augment(pairs, method="label-wise", filter__mode="off", model=model, device="cpu", progress=False)
        tagger.predict(tokens)

    for _ in range(20):
        call()
    before = resident_bytes()
    for _ in range(100):
        call()
    # A leak of one copy of the model (80 kB) in each call would be 8 MB.
    assert resident_bytes() - before < 4_000_000
