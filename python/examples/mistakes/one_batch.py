"""The loop draws one batch, and trains on it again and again."""

import torch

import digits

images, labels = digits.data()
train, held_out = digits.split(images, labels)
model = digits.network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = torch.nn.CrossEntropyLoss()
hook = digits.watch(model, optimizer)
batch = next(digits.batches(*train))  # The mistake: drawn once, outside of the loop.
for _ in range(digits.EPOCHS):
    for inputs, targets in [batch] * 23:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
    digits.evaluate(hook, model, criterion, *held_out)
digits.finish(hook)
