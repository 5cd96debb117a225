"""Small jobs of today's trainers that people met, judged in the process by the default rules (tests/python/test_field_jobs.py has others)."""

import lightning.pytorch
import pytest
import torch
import transformers

from tests.support.hook_support import Telemetry

import tocsin.lightning
import tocsin.transformers


class Classifier(lightning.pytorch.LightningModule):
    """A body as from_pretrained() gives it; Lightning leaves it in the state in which it comes."""

    def __init__(self, training):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(64, 32))
        self.head = torch.nn.Linear(32, 4)
        self.body.train(training)

    def training_step(self, batch, _):
        loss = torch.nn.functional.cross_entropy(self.head(torch.relu(self.body(batch[0]))), batch[1])
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 2e-3)


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
def test_a_body_that_lightning_leaves_in_its_eval_state_is_told(out, training):
    torch.manual_seed(0)
    x = torch.randn(512, 16)
    data = torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long())
    model = Classifier(training)
    lightning.pytorch.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                              enable_model_summary=False, callbacks=[tocsin.lightning.TocsinCallback(out=out)]).fit(
                                  model, torch.utils.data.DataLoader(data, 32, shuffle=True))
    assert model.body.training is training
    found = [one["names"] for record in Telemetry(out).lifecycles("preflight") for one in record["findings"] if one["kind"] == "parts_in_eval"]
    assert found == ([] if training else [["body.2"]])


class Positions(torch.utils.data.Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, number):
        generator = torch.Generator().manual_seed(number)
        tokens = 2 + (torch.randint(0, 62, (1,), generator=generator) + 3 * torch.arange(16)) % 62
        return {"input_ids": tokens, "labels": tokens}


def test_a_small_gpt_2_that_learns_is_left_alone(out, tmp_path):
    """Its table of positions shrinks while the loss falls."""
    torch.manual_seed(0)
    callback = tocsin.transformers.TocsinCallback(out=out, job="positions", rules="default")
    transformers.Trainer(
        model=transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=1, n_head=2)),
        args=transformers.TrainingArguments(output_dir=str(tmp_path / "trained"), max_steps=300, per_device_train_batch_size=16, learning_rate=1e-3,
                                            logging_steps=100, report_to=[], use_cpu=True, disable_tqdm=True, save_strategy="no"),
        train_dataset=Positions(), callbacks=[callback]).train()
    hook = callback._watcher.hook
    assert [(one["rule"], one.get("text")) for one in hook.issues()] == []
    losses = [value for _, _, value in Telemetry(out).scalars("loss")]
    assert losses[-1] < 0.5 * losses[0]
