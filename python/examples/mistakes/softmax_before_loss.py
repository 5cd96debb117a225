"""The network ends in a softmax, and the loss applies its own."""

import torch

import digits

images, labels = digits.data()
train, held_out = digits.split(images, labels)
model = torch.nn.Sequential(digits.network(), torch.nn.Softmax(dim=1))  # The mistake: CrossEntropyLoss wants logits.
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
