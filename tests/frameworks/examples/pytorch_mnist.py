"""After pytorch/examples, mnist/main.py: the same network and loop, on pictures that are made here. Not a line for tocsin."""
import argparse

import torch
import torch.nn.functional as F
from torch import nn, optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.fc1 = nn.Linear(576, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = torch.flatten(self.dropout1(F.max_pool2d(x, 2)), 1)
        return self.fc2(F.relu(self.fc1(x)))


def train(args, model, train_loader, optimizer, criterion, epoch):
    model.train()
    for data, target in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        loss.backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(1)
    images, labels = torch.rand(256, 1, 16, 16), torch.randint(0, 10, (256,))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, labels), batch_size=16, shuffle=True)
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        train(args, model, loader, optimizer, nn.CrossEntropyLoss(), epoch)


if __name__ == "__main__":
    main()
