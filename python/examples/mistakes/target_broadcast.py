"""Outputs of shape (64, 1) meet targets of shape (64): the loss compares all with all."""

import torch

import digits

images, labels = digits.data()
labels = labels / 9  # The mistake: labels[:, None] would have the shape of the outputs.
train, held_out = digits.split(images, labels)
model = digits.network(outputs=1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
criterion = torch.nn.MSELoss()
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
