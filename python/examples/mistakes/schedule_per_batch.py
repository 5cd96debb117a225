"""A schedule that is meant to step once per epoch steps at each batch."""

import torch

import digits

images, labels = digits.data()
train, held_out = digits.split(images, labels)
model = digits.network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = torch.nn.CrossEntropyLoss()
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.1)  # Down tenfold every ten epochs.
hook = digits.watch(model, optimizer)
for _ in range(digits.EPOCHS):
    for inputs, targets in digits.batches(*train):
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
        schedule.step()  # The mistake: belongs behind the epoch.
    digits.evaluate(hook, model, criterion, *held_out)
digits.finish(hook)
