"""A small residual net with BatchNorm, evaluated between its epochs."""

import torch
from common import STEPS, Steps, wrapped
from torch import nn


class Block(nn.Module):
    def __init__(self, into, out, stride):
        super().__init__()
        self.first, self.first_norm = nn.Conv2d(into, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.second, self.second_norm = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.shortcut = nn.Sequential() if into == out and stride == 1 else nn.Sequential(
            nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(y)) + self.shortcut(x))


def resnet():
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    for into, out, stride in ((16, 16, 1), (16, 32, 2), (32, 64, 2), (64, 128, 2)):
        layers.append(Block(into, out, stride))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))


model = wrapped(resnet())
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
steps = Steps()
for epoch in range(2):
    model.train()
    for _ in range(STEPS // 2):
        images, labels = torch.randn(16, 3, 32, 32), torch.randint(10, (16,))
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        steps.end()
    model.eval()
    with torch.no_grad():
        model(torch.randn(16, 3, 32, 32))
    scheduler.step()
steps.report()
