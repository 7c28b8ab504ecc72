"""Saves a randomly initialised model of the given size with transformers: make_checkpoint.py SHAPE OUT_FOLDER"""
import sys
from torch_step import model_of

model_of(sys.argv[1]).save_pretrained(sys.argv[2])
