"""A training loop with Accelerate and three micro-steps per step."""

import torch
from accelerate import Accelerator
from common import STEPS, Steps
from torch.utils.data import DataLoader, TensorDataset

MICRO_STEPS = 3

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=MICRO_STEPS)
size = accelerator.num_processes * STEPS * MICRO_STEPS * 64
loader = DataLoader(TensorDataset(torch.randn(size, 200), torch.randint(10, (size,))), batch_size=64, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(200, 700), torch.nn.ReLU(), torch.nn.Linear(700, 700), torch.nn.ReLU(),
                            torch.nn.Linear(700, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
steps = Steps()
model.train()
for inputs, labels in loader:
    with accelerator.accumulate(model):
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    if accelerator.sync_gradients:
        steps.end()
steps.report()
