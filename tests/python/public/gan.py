"""A generator and a discriminator of images; the generator's loss goes through the discriminator."""

import torch
from common import STEPS, Steps, wrapped
from torch import nn

NOISE, FEATURES = 64, 32

generator = wrapped(nn.Sequential(
    nn.ConvTranspose2d(NOISE, FEATURES * 4, 4, 1, 0, bias=False), nn.BatchNorm2d(FEATURES * 4), nn.ReLU(True),
    nn.ConvTranspose2d(FEATURES * 4, FEATURES * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(FEATURES * 2), nn.ReLU(True),
    nn.ConvTranspose2d(FEATURES * 2, FEATURES, 4, 2, 1, bias=False), nn.BatchNorm2d(FEATURES), nn.ReLU(True),
    nn.ConvTranspose2d(FEATURES, 3, 4, 2, 1, bias=False), nn.Tanh()))
discriminator = wrapped(nn.Sequential(
    nn.Conv2d(3, FEATURES, 4, 2, 1, bias=False), nn.LeakyReLU(0.2),
    nn.Conv2d(FEATURES, FEATURES * 2, 4, 2, 1, bias=False), nn.LeakyReLU(0.2),
    nn.Conv2d(FEATURES * 2, FEATURES * 4, 4, 2, 1, bias=False), nn.LeakyReLU(0.2),
    nn.Conv2d(FEATURES * 4, 1, 4, 1, 0, bias=False), nn.Flatten(0), nn.Sigmoid()))
criterion = nn.BCELoss()
of_discriminator = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
of_generator = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
steps = Steps()
for _ in range(STEPS):
    discriminator.zero_grad()
    real = torch.randn(16, 3, 32, 32)
    criterion(discriminator(real), torch.ones(16)).backward()
    fake = generator(torch.randn(16, NOISE, 1, 1))
    criterion(discriminator(fake.detach()), torch.zeros(16)).backward()
    of_discriminator.step()
    generator.zero_grad()
    criterion(discriminator(fake), torch.ones(16)).backward()
    of_generator.step()
    steps.end()
steps.report()
