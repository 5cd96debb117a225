"""After transformers, examples/pytorch/language-modeling: a Trainer of a causal model, made from a configuration."""
import argparse

import torch
import transformers

from tocsin.transformers import TocsinCallback  # tocsin 1


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        ids = (torch.arange(8) + index) % 32
        return {"input_ids": ids, "labels": ids}


parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=1e-3)
parser.add_argument("--epochs", type=int, default=1)
args = parser.parse_args()
transformers.set_seed(0)
model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=32, n_positions=8, n_embd=16, n_layer=1, n_head=2))
training = transformers.TrainingArguments(output_dir="trained", per_device_train_batch_size=16, num_train_epochs=args.epochs, learning_rate=args.lr,
                                          max_grad_norm=0, report_to=[], use_cpu=True, disable_tqdm=True, save_strategy="no")
trainer = transformers.Trainer(model=model, args=training, train_dataset=Tokens(), callbacks=[TocsinCallback()])  # tocsin 2
trainer.train()
