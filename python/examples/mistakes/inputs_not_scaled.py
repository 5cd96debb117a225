"""Pixels go from 0 to 255, where the learning rate was found for 0 to 1."""

import torch

import digits

images, labels = digits.data()
images = images * 255  # The mistake: 0 to 1 is right.
train, held_out = digits.split(images, labels)
model = digits.network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = torch.nn.CrossEntropyLoss()
hook = digits.watch(model, optimizer)
for _ in range(digits.EPOCHS):
    for inputs, targets in digits.batches(*train):
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
    digits.evaluate(hook, model, criterion, *held_out)
digits.finish(hook)
