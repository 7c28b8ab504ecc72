"""Write a random checkpoint at a model's shape, as transformers saves it: make_checkpoint.py SHAPE OUT_FOLDER"""
import sys
from torch_step import model_of

model_of(sys.argv[1]).save_pretrained(sys.argv[2])
