"""Hugging Face's Trainer on a small GPT-2."""

import tempfile

import torch
from common import STEPS, Steps
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

steps = Steps()


class Watch(TrainerCallback):
    def on_step_end(self, *_, **__):
        steps.end()


class Text(torch.utils.data.Dataset):
    def __len__(self):
        return 100000

    def __getitem__(self, index):
        words = (torch.arange(64) * 3 + index) % 300
        return {"input_ids": words, "labels": words}


model = GPT2LMHeadModel(GPT2Config(vocab_size=300, n_positions=64, n_embd=128, n_layer=3, n_head=4))
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(output_dir=folder, per_device_train_batch_size=8, gradient_accumulation_steps=2, max_steps=STEPS,
                                  use_cpu=True, report_to=[], save_strategy="no", logging_steps=5, disable_tqdm=True)
    Trainer(model=model, args=arguments, train_dataset=Text(), callbacks=[Watch()]).train()
steps.report()
