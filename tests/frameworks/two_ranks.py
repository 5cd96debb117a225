"""A Trainer on two ranks, made by torchrun: only one of them is asked to stop. Each writes the step after which it left into left<rank>."""
import sys

import torch
import transformers

from tocsin.transformers import TocsinCallback


class Asked:
    mode = "stop"


class OneRankIsAsked(TocsinCallback):
    """Stands for a command that one rank's client has read a moment before the other's."""

    def on_step_end(self, args, state, control, **kwargs):
        if args.process_index == 1 and state.global_step == 3:
            self._watcher.stopped = Asked()
        return super().on_step_end(args, state, control, **kwargs)


def main(folder):
    data = [{"input_ids": torch.arange(8), "labels": torch.arange(8)}] * 64
    config = transformers.GPT2Config(vocab_size=32, n_positions=8, n_embd=16, n_layer=1, n_head=2)
    arguments = transformers.TrainingArguments(output_dir=folder, max_steps=20, per_device_train_batch_size=2, report_to=[], use_cpu=True,
                                               disable_tqdm=True, save_strategy="no")
    trainer = transformers.Trainer(model=transformers.GPT2LMHeadModel(config), args=arguments, train_dataset=data,
                                   callbacks=[OneRankIsAsked(out=folder + "/data", run="two")])
    trainer.train()
    with open(f"{folder}/left{arguments.process_index}", "w", encoding="ascii") as file:  # lines of two ranks on one stdout may mix
        file.write(str(trainer.state.global_step))


if __name__ == "__main__":
    main(sys.argv[1])
