"""The learning rate is ten thousand times too small."""

import torch

import digits

images, labels = digits.data()
train, held_out = digits.split(images, labels)
model = digits.network()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-5, momentum=0.9)  # The mistake: 0.1 is right.
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
