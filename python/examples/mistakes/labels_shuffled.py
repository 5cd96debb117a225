"""Images and labels are shuffled apart, so that no label belongs to its image."""

import torch

import digits

images, labels = digits.data()
labels = labels[torch.randperm(len(labels))]  # The mistake: images keep their order.
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
