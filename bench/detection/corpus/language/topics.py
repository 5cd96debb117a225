"""Words.

bag_imbalanced    an embedding bag tells topics of very unlike frequency, cross-entropy with weights, one report per epoch
lm_padded         a causal language model of sentences with padding, three batches per update, AdamW, warm-up and a line to nothing
lora_warmup       a language model that was trained before learns another dialect by adapters of low rank; warm-up from nothing
trainer_topics    Hugging Face's Trainer tells topics with a small DistilBERT, compute_metrics, evaluation by steps

Their faults: below, at the end."""
import importlib.util
import math
import tempfile

import numpy
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

import tocsin

from ..scripts.support import ended, entered, errors, from_start, rate
from ..scripts.glyphs import labelled, warmed


def _documents(seed, count, shares, words=160, shortest=6, longest=24):
    """Lists of words, 1 and up, and their topics: a topic has words that it likes."""
    drawn = numpy.random.default_rng(seed)
    general = 1 / numpy.arange(3, words + 3)
    of_topic = numpy.stack([general * drawn.gamma(0.25, 1, words) for _ in shares])
    of_topic = 0.55 * of_topic / of_topic.sum(1, keepdims=True) + 0.45 * general / general.sum()
    topics = drawn.choice(len(shares), count, p=shares)
    return [1 + drawn.choice(words, drawn.integers(shortest, longest + 1), p=of_topic[topic]) for topic in topics], torch.tensor(topics)


def _bag_imbalanced(fault, seed, chance, options):
    shares = (0.58, 0.2, 0.12, 0.06, 0.04)
    texts, topics = _documents(seed, 3600, shares)
    texts, held, y, held_y = texts[:-800], texts[-800:], labelled(topics[:-800], fault, 5), topics[-800:]
    if fault == "held_recoded":
        again = numpy.concatenate([[0], 1 + numpy.random.default_rng(seed).permutation(160)])
        held = [again[one] for one in held]
    if fault == "classes_sorted":
        order = torch.argsort(y, stable=True)
        texts, y = [texts[one] for one in order], y[order]

    class Topics(nn.Module):
        """As in PyTorch's tutorial."""

        def __init__(self, width):
            super().__init__()
            self.embedding, self.fc = nn.EmbeddingBag(161, width), nn.Linear(width, 5)

        def forward(self, text, offsets):
            return self.fc(self.embedding(text, offsets))

    def collate(rows):
        starts = torch.tensor([0, *(len(text) for text, _ in rows[:-1])]).cumsum(0)
        text = torch.tensor(numpy.concatenate([text for text, _ in rows]))
        if fault == "offsets_moved":
            starts = torch.cat([starts[:1], (starts[1:] + 12).clamp(max=len(text))])
        return text, starts, torch.stack([label for _, label in rows])
    model, batch = Topics(chance.choice((24, 32))), chance.choice((32, 48))
    counts = torch.bincount(y, minlength=5).float()
    weight = counts / counts.mean() if fault == "weight_inverted" else counts.mean() / counts.clamp(min=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate(chance.uniform(3e-3, 6e-3), fault))
    loader = DataLoader(list(zip(texts, y)), batch, shuffle=fault != "classes_sorted", collate_fn=collate, drop_last=True)
    checked = DataLoader(list(zip(held, held_y)), 200, collate_fn=collate)

    def evaluate():
        """(loss, macro recall)"""
        model.eval()
        with torch.no_grad():
            parts = [(model(text, starts), label) for text, starts, label in checked]
        output, label = (torch.cat(one) for one in zip(*parts))
        recalls = [(output.argmax(1) == label)[label == kind].float().mean().item() for kind in range(5)]
        return functional.cross_entropy(output, label, weight=weight).item(), sum(recalls) / 5
    passes, done = [[0, 1 - evaluate()[1]]], 0
    hook = tocsin.watch(model, optimizer, **options)
    for _ in range(7):
        model.train()
        total = 0.0
        for text, starts, label in loader:
            optimizer.zero_grad()
            output = model(text, starts)
            loss = functional.cross_entropy(output.softmax(1) if fault == "softmax_twice" else output, label, weight=weight)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
            done += 1
        val_loss, recall = evaluate()
        hook.log(train_loss=total / len(loader), val_loss=val_loss, macro_recall=recall)
        passes.append([done - 1, 1 - recall])
    return ended(hook, done, passes)


class Layer(nn.Module):
    """Attention and two layers; adapters of low rank where a rank is given."""

    def __init__(self, width):
        super().__init__()
        self.norm1, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, causal):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(functional.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Speaker(nn.Module):
    """Two layers over words and places."""

    def __init__(self, kinds, width, causal=True):
        super().__init__()
        self.words, self.places, self.causal = nn.Embedding(kinds, width), nn.Embedding(20, width), causal
        self.layers, self.norm, self.head = nn.ModuleList(Layer(width) for _ in range(2)), nn.LayerNorm(width), nn.Linear(width, kinds, bias=False)
        for one in self.parameters():
            if one.dim() > 1:
                nn.init.normal_(one, std=0.03)

    def forward(self, x):
        x = self.words(x) + self.places.weight[:x.shape[1]]
        for layer in self.layers:
            x = layer(x, self.causal)
        return self.head(self.norm(x))


def _sentences(seed, count, kinds=12, longest=16, dialect=0):
    """Sentences of 6 to 16 words, 0 behind their end; a word hangs on the two before. A dialect has other rules for a part of the words."""
    rules, drawn = numpy.random.default_rng(7), numpy.random.default_rng(seed)
    tables = [rules.dirichlet(numpy.full(kinds - 1, 0.15), (kinds, kinds)) for _ in range(2)]
    table = tables[0]
    if dialect:
        table = table.copy()
        table[:, ::2] = tables[1][:, ::2]
    lengths, cumulative = drawn.integers(6, longest + 1, count), table.cumsum(-1)
    out = numpy.zeros((count, longest), int)
    before, last = drawn.integers(1, kinds, count), drawn.integers(1, kinds, count)
    for at in range(longest):
        now = 1 + (drawn.random((count, 1)) > cumulative[before, last]).sum(1).clip(0, kinds - 2)
        out[:, at] = numpy.where(at < lengths, now, 0)
        before, last = last, now
    return torch.tensor(out)


def _nats(model, rows):
    """Cross-entropy of the real words, told word by word with what stands before."""
    causal, model.causal = model.causal, True
    model.eval()
    with torch.no_grad():
        loss = functional.cross_entropy(model(rows[:, :-1]).float().flatten(0, 1), rows[:, 1:].flatten(), ignore_index=0).item()
    model.train()
    model.causal = causal
    return loss


def _lm_padded(fault, seed, chance, options):
    rows, batch, updates = _sentences(seed, 3400), chance.choice((10, 12)), 330
    rows, held, drawn = rows[:-300], rows[-300:], torch.Generator().manual_seed(seed)
    model = Speaker(12, chance.choice((24, 32)), causal=fault != "future_seen")
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(chance.uniform(2e-3, 4e-3), fault), betas=(0.9, 0.98), weight_decay=0.05)
    scheduler = warmed(optimizer, updates, 30, fault)

    def compute_loss(tokens):
        inputs, labels = tokens[:, :-1], tokens[:, 1:]
        if fault == "unshifted":
            labels = inputs
        elif fault == "labels_misaligned":
            labels = labels.roll(1, 0)
        mask = (labels == 0 if fault == "loss_of_padding" else labels != 0).float()
        each = functional.cross_entropy(model(inputs).float().transpose(1, 2), labels, reduction="none")
        return (each * mask).sum() / mask.sum()

    def validate():
        model.eval()
        with torch.no_grad():
            loss = sum(compute_loss(part).item() for part in held.split(100)) / 3
        model.train()
        return loss
    passes = [[0, _nats(model, held)]]
    hook = tocsin.watch(model, optimizer, **options)
    for update in range(updates):
        total = 0.0
        for _ in range(3):
            loss = compute_loss(rows[torch.randint(0, len(rows), (batch,), generator=drawn)]) / 3
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        hook.log(loss=total)
        optimizer.step()
        if fault != "schedule_per_epoch" or update % 65 == 64:
            scheduler.step()
        if fault != "zero_grad_missing":
            optimizer.zero_grad(set_to_none=True)
        if update % 55 == 54:
            val_loss = validate()
            passes.append([update, _nats(model, held)])
            with hook.mode("eval"):
                hook.log(loss=val_loss, perplexity=math.exp(min(val_loss, 20)))
                hook.step()
    return ended(hook, updates, passes)


class Adapted(nn.Module):
    """A layer that stands, and what is added to it: B starts at zero."""

    def __init__(self, layer, rank, both_zero):
        super().__init__()
        self.base = layer.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.randn(rank, layer.in_features) / math.sqrt(layer.in_features) * (not both_zero))
        self.lora_b = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.base(x) + 2.0 * (x @ self.lora_a.T) @ self.lora_b.T


def _lora_warmup(fault, seed, chance, options):
    before, rows, width, rank = _sentences(1000 + seed, 3000), _sentences(seed, 2600, dialect=1), 32, chance.choice((4, 8))
    rows, held, drawn = rows[:-300], rows[-300:], torch.Generator().manual_seed(seed)
    model, batch, steps = Speaker(12, width), chance.choice((20, 24)), 360
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(0 if fault == "pretrained_missing" else 250):
        part = before[torch.randint(0, len(before), (24,), generator=drawn)]
        optimizer.zero_grad()
        functional.cross_entropy(model(part[:, :-1]).flatten(0, 1), part[:, 1:].flatten(), ignore_index=0).backward()
        optimizer.step()
    model.requires_grad_(False)
    for layer in model.layers:
        for name in ("qkv", "out", "up", "down"):
            setattr(layer, name, Adapted(getattr(layer, name), rank, fault == "adapters_both_zero"))
    tuned = [one for name, one in model.named_parameters() if (".base." in name if fault == "optimizer_without_adapters" else one.requires_grad)]
    optimizer = torch.optim.AdamW(tuned, lr=rate(chance.uniform(4e-3, 8e-3), fault), weight_decay=0.0)
    scheduler = warmed(optimizer, steps, 40, fault)
    passes = [[0, _nats(model, held)]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        part = rows[torch.randint(0, len(rows), (batch,), generator=drawn)]
        labels = part[:, 1:].roll(1, 0) if fault == "labels_misaligned" else part[:, 1:]
        loss = functional.cross_entropy(model(part[:, :-1]).flatten(0, 1), labels.flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        hook.log(loss=loss.item(), lr=scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
        if step % 60 == 59:
            passes.append([step, _nats(model, held)])
            hook.log(val_loss=passes[-1][1])
    return ended(hook, steps, passes)


def _trainer_topics(fault, seed, chance, options):
    import transformers

    from tocsin.transformers import TocsinCallback
    transformers.utils.logging.set_verbosity_error()
    texts, topics = _documents(seed, 2600, (0.25,) * 4, longest=15, shortest=8)
    rows = torch.tensor(numpy.stack([numpy.pad(one, (0, 15 - len(one))) for one in texts]))
    x, held_x, y, held_y = rows[:-500], rows[-500:], labelled(topics[:-500], fault, 4), topics[-500:]
    if fault == "held_other_classes":
        held_y = (held_y + 1) % 4
    elif fault == "held_in_training":
        x, y = torch.cat([x, held_x]), torch.cat([y, held_y])
    config = transformers.DistilBertConfig(vocab_size=161, pad_token_id=0, dim=chance.choice((32, 48)), n_layers=2, n_heads=4, hidden_dim=96,
                                           max_position_embeddings=15, dropout=0.1, num_labels=4)
    model, seen, passes, steps = transformers.DistilBertForSequenceClassification(config), [], [], 320
    if fault == "backbone_frozen":
        model.distilbert.requires_grad_(False)

    def listed(x, y):
        return [{"input_ids": one, "attention_mask": ((one == 0) if fault == "mask_inverted" else (one != 0)).long(), "labels": label}
                for one, label in zip(x, y)]

    def compute_metrics(prediction):
        return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}

    class Keep(transformers.TrainerCallback):
        """Notes the run's name while the hook is open, and the evaluations."""

        def on_step_end(self, args, state, control, **_):
            seen[:] = seen or [tocsin.get_hook().run]

        def on_evaluate(self, args, state, control, metrics=None, **_):
            passes.append([state.global_step - 1, 1 - metrics["eval_accuracy"]])
    with torch.no_grad():
        passes.append([0, errors(model.eval()(input_ids=held_x, attention_mask=(held_x != 0).long()).logits, held_y)])
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder, max_steps=steps, per_device_train_batch_size=chance.choice((24, 32)), per_device_eval_batch_size=250,
            warmup_steps=20 * steps if fault == "warmup_endless" else 20, learning_rate=rate(chance.uniform(1e-3, 3e-3), fault), weight_decay=0.01,
            lr_scheduler_type="linear", eval_strategy="steps", eval_steps=40, logging_steps=10, save_strategy="no", report_to=[], log_level="error",
            use_cpu=True, disable_tqdm=True, seed=seed)
        trainer = transformers.Trainer(model, arguments, train_dataset=listed(x, y), eval_dataset=listed(held_x, held_y), compute_metrics=compute_metrics,
                                       callbacks=[TocsinCallback(**options), Keep()])
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
    return seen[0], steps, passes


_JOBS = {
    "bag_imbalanced": (_bag_imbalanced, from_start("labels_shuffled", "offsets_moved", "held_recoded", "weight_inverted", "softmax_twice",
                                                   "rate_thousandth", "classes_sorted", "class_random")),
    "lm_padded": (_lm_padded, from_start("future_seen", "unshifted", "loss_of_padding", "zero_grad_missing", "schedule_per_epoch",
                                         "labels_misaligned", "rate_hundredfold", schedule_ends_early=0.2)),
    "lora_warmup": (_lora_warmup, from_start("optimizer_without_adapters", "adapters_both_zero", "warmup_endless", "pretrained_missing",
                                             "labels_misaligned", "rate_hundredfold", schedule_ends_early=0.2)),
    "trainer_topics": (_trainer_topics, from_start("labels_shuffled", "held_other_classes", "rate_hundredfold", "backbone_frozen",
                                                   "warmup_endless", "held_in_training", "class_random"))}
TUNING, FAULTS, fault_names, run = entered({name: made for name, made in _JOBS.items()
                                            if importlib.util.find_spec("transformers" if name == "trainer_topics" else "torch")})
