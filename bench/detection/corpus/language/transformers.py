"""Words.

gpt_tied          a causal language model of our own, tied weights, AdamW with betas of 0.9 and 0.95, warm-up and cosine, letters of English text
lora_tuned        a pretrained transformer, frozen, with adapters of low rank (B = 0) and a new head: it told the topic of a
                  sentence's beginning, and is to tell that of its end
seq2seq_padded    an encoder and a decoder with padding, sentences in reverse; Accelerate's loop, two batches per update
bert_masked       Hugging Face's BertForMaskedLM from scratch in its Trainer, masked by a collator of our own, on sentences of topics

Their faults: below, at the end; what the names mean says support.WORDS."""
import copy
import importlib.util
import math
import tempfile

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import tocsin

from .. import data
from ..scripts.support import ended, entered, errors, from_start, labelled, rate, warmed_cosine


class Block(nn.Module):
    """Attention and two layers, norms first."""

    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.c_attn, self.c_proj = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ln_2, self.c_fc, self.mlp_proj, self.heads = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width), heads

    def forward(self, x, mask):
        q, k, v = self.c_attn(self.ln_1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.c_proj(functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2))
        return x + self.mlp_proj(functional.gelu(self.c_fc(self.ln_2(x))))


class Gpt(nn.Module):
    """After nanoGPT."""

    def __init__(self, kinds, length, width, depth):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(kinds, width), nn.Embedding(length, width)
        self.h, self.ln_f = nn.ModuleList(Block(width, 4) for _ in range(depth)), nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, kinds, bias=False)
        self.lm_head.weight = self.wte.weight
        for name, one in self.named_parameters():
            if one.dim() > 1:
                nn.init.normal_(one, std=0.02 / math.sqrt(2 * depth) if "proj" in name else 0.02)
        self.register_buffer("mask", torch.ones(length, length, dtype=torch.bool).tril(), persistent=False)

    def forward(self, x):
        y = self.wte(x) + self.wpe.weight[:x.shape[1]]
        for block in self.h:
            y = block(y, self.mask)
        return self.lm_head(self.ln_f(y))


def _gpt_tied(fault, seed, chance, options):
    length = chance.choice((20, 24))
    split, batch, steps = data.text(seed, length), chance.choice((24, 32)), 340
    model, drawn = Gpt(split.classes, length, chance.choice((32, 48)), 2), torch.Generator().manual_seed(seed)
    if fault == "future_seen":
        model.mask.fill_(True)
    elif fault == "everything_masked":
        model.mask.copy_(torch.eye(length, dtype=torch.bool))
    if fault == "weights_bfloat16":
        model.bfloat16()
    y, told = (split.x, split.held_x) if fault == "unshifted" else (labelled(split.y, fault), split.held_y)
    matrices, others = [one for one in model.parameters() if one.dim() > 1], [one for one in model.parameters() if one.dim() < 2]
    peak = rate(chance.uniform(3e-3, 6e-3), fault)
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=peak, betas=(0.9, 0.95))
    scheduler = warmed_cosine(optimizer, steps, 30, fault)

    def held():
        model.eval()
        with torch.no_grad():
            logits = model(split.held_x).flatten(0, 1)
        model.train()
        return functional.cross_entropy(logits, told.flatten()).item()

    def truth():
        """Of a copy, with the mask that was meant."""
        other = copy.deepcopy(model).eval()
        if fault == "future_seen":
            other.mask.copy_(other.mask.tril())
        with torch.no_grad():
            return functional.cross_entropy(other(split.held_x).flatten(0, 1), split.held_y.flatten()).item()
    passes = [[0, truth()]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        chosen = torch.randint(0, len(split.x), (batch,), generator=drawn)
        logits = model(split.x[chosen])
        loss = functional.cross_entropy(logits.view(-1, logits.size(-1)), y[chosen].view(-1))
        if fault != "zero_grad_missing":
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        hook.log(loss=loss.item(), grad_norm=norm)
        optimizer.step()
        scheduler.step()
        if step % 40 == 39:
            val_loss = held()
            passes.append([step, truth()])
            hook.log(val_loss=val_loss, perplexity=math.exp(min(val_loss, 50)))
    return ended(hook, steps, passes)


def _sentences(seed, count, topics, share=0.4):
    """Words 1 to 59, of which each topic prefers nine; filled up with 0 to 14 words."""
    drawn = torch.Generator().manual_seed(seed)
    y = torch.randint(0, topics, (count,), generator=drawn)
    lengths = torch.randint(6, 15, (count, 1), generator=drawn)
    own = 1 + 9 * y[:, None] + torch.randint(0, 9, (count, 14), generator=drawn)
    x = torch.where(torch.rand(count, 14, generator=drawn) < share, own, torch.randint(1, 60, (count, 14), generator=drawn))
    return torch.where(torch.arange(14) < lengths, x, 0), y


def _halves(seed, count):
    """Sentences whose first six words are of one topic and whose others are of another one: (words, first topic, second topic)."""
    (x, first), (more, second) = _sentences(seed, count, 6, 0.6), _sentences(seed + 1, count, 6, 0.6)
    return torch.cat([x[:, :6], more[:, :8]], 1), first, second


class Reader(nn.Module):
    """A transformer whose words' mean is taken."""

    def __init__(self, width, depth, topics):
        super().__init__()
        self.embed, self.places = nn.Embedding(60, width, padding_idx=0), nn.Parameter(0.02 * torch.randn(1, 14, width))
        self.layers = nn.ModuleList(Block(width, 4) for _ in range(depth))
        self.classifier = nn.Linear(width, topics)

    def forward(self, x):
        there = x != 0
        y = self.embed(x) + self.places
        for layer in self.layers:
            y = layer(y, there[:, None, None, :])
        return self.classifier((y * there[..., None]).sum(1) / there.sum(1, keepdim=True))


class LoraLinear(nn.Module):
    """A frozen layer, and beside it two thin ones."""

    def __init__(self, base, rank, alpha, zeros):
        super().__init__()
        self.base = base
        self.lora_A, self.lora_B = nn.Parameter(torch.empty(rank, base.in_features)), nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        if zeros:
            nn.init.zeros_(self.lora_A)
        self.scaling = alpha / rank

    def forward(self, x):
        return self.base(x) + functional.linear(functional.linear(x, self.lora_A), self.lora_B) * self.scaling


def _lora_tuned(fault, seed, chance, options):
    width, rank, steps, batch = chance.choice((32, 48)), chance.choice((4, 8)), 320, chance.choice((32, 48))
    model = Reader(width, 2, 6)
    fresh, drawn = {name: one.clone() for name, one in model.state_dict().items()}, torch.Generator().manual_seed(seed)
    known, topics, _ = _halves(seed + 1000, 2000)
    before = torch.optim.AdamW(model.parameters(), 3e-3)  # elsewhere, long ago
    for _ in range(100):
        chosen = torch.randint(0, 2000, (48,), generator=drawn)
        loss = functional.cross_entropy(model(known[chosen]), topics[chosen])
        before.zero_grad()
        loss.backward()
        before.step()
    if fault == "pretrained_missing":
        model.load_state_dict(fresh)
    model.requires_grad_(False)
    for layer in model.layers:
        for name in ("c_attn", "c_fc"):
            setattr(layer, name, LoraLinear(getattr(layer, name), rank, 1000 * rank if fault == "adapters_scaled" else 2 * rank,
                                            fault == "adapters_both_zero"))
    model.classifier = nn.Linear(width, 3)
    x, _, y = _halves(seed, 1800)
    y, held_y, x, held_x = labelled(y[:-300] // 2, fault), y[-300:] // 2, x[:-300], x[-300:]
    trained = model.classifier.parameters() if fault == "optimizer_without_adapters" else [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=rate(chance.uniform(3e-3, 6e-3), fault), weight_decay=0.01)
    scheduler = warmed_cosine(optimizer, steps, 20, fault)

    def held():
        model.eval()
        with torch.no_grad():
            output = model(held_x)
        model.train()
        return functional.cross_entropy(output, held_y).item(), errors(output, held_y)
    passes = [[0, held()[1]]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        chosen = torch.randint(0, len(x), (batch,), generator=drawn)
        loss = functional.cross_entropy(model(x[chosen]), y[chosen])
        optimizer.zero_grad()
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
        scheduler.step()
        if step % 40 == 39:
            eval_loss, wrong = held()
            passes.append([step, wrong])
            with hook.mode("eval"):
                hook.log(loss=eval_loss, accuracy=1 - wrong)
                hook.step()
    return ended(hook, steps, passes)


class Seq2Seq(nn.Module):
    """PyTorch's transformer with embeddings."""

    def __init__(self, kinds, width, lax, inverted):
        super().__init__()
        self.embed, self.places = nn.Embedding(kinds, width, padding_idx=0), nn.Parameter(0.1 * torch.randn(1, 12, width))
        self.transformer = nn.Transformer(width, 4, 1, 1, 2 * width, 0.0, batch_first=True, norm_first=True)
        self.out, self.lax, self.inverted = nn.Linear(width, kinds), lax, inverted

    def forward(self, x, y):
        padding = (x != 0) if self.inverted else (x == 0)
        causal = torch.ones(y.shape[1], y.shape[1], dtype=torch.bool).triu(1)
        return self.out(self.transformer(self.embed(x) + self.places[:, :x.shape[1]], self.embed(y) + self.places[:, :y.shape[1]],
                                         tgt_mask=None if self.lax else causal, src_key_padding_mask=padding, memory_key_padding_mask=padding))


def _seq2seq_padded(fault, seed, chance, options):
    from accelerate import Accelerator
    accelerator, drawn = Accelerator(cpu=True, gradient_accumulation_steps=2), torch.Generator().manual_seed(seed)
    count, longest, kinds, updates = 2600, 7, 14, 330
    lengths = torch.randint(3, longest + 1, (count, 1), generator=drawn)
    words, at = torch.randint(3, kinds, (count, longest), generator=drawn), torch.arange(longest)
    x = torch.where(at < lengths, words, 0)
    back = torch.where(at < lengths, words.gather(1, (lengths - 1 - at).clamp(min=0)), 0)
    y = torch.cat([back, torch.zeros(count, 1, dtype=torch.long)], 1).scatter(1, lengths, 2)  # 2 ends a sentence, 1 begins it
    given = torch.cat([torch.ones(count, 1, dtype=torch.long), y[:, :-1]], 1)
    x, given, y, held_x, held_given, held_y = x[:-300], given[:-300], y[:-300], x[-300:], given[-300:], y[-300:]
    answer, given, told = labelled(y, fault), *((y, held_y) if fault == "answer_given" else (given, held_given))
    model = Seq2Seq(kinds, chance.choice((48, 64)), fault == "future_seen", fault == "mask_inverted")
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(chance.uniform(2e-3, 3.5e-3), fault), weight_decay=0.01)
    loader = DataLoader(TensorDataset(x, given, answer), chance.choice((24, 32)), shuffle=True, drop_last=True,
                        generator=torch.Generator().manual_seed(seed))
    left_out = -100 if fault == "padding_counted" else 0
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    def exact():
        """Share of words that are wrong where the model speaks by itself."""
        model.eval()
        said = torch.ones(len(held_x), 1, dtype=torch.long)
        with torch.no_grad():
            for _ in range(longest + 1):
                said = torch.cat([said, model(held_x, said)[:, -1:].argmax(-1)], 1)
            loss = functional.cross_entropy(model(held_x, told).flatten(0, 1), held_y.flatten(), ignore_index=left_out)
        model.train()
        there = held_y != 0
        return loss.item(), float(((said[:, 1:] != held_y) & there).sum() / there.sum())
    passes, done = [[0, exact()[1]]], 0
    hook = tocsin.watch(model, optimizer, **options)
    while done < updates:
        for source, before, target in loader:
            with accelerator.accumulate(model):
                loss = functional.cross_entropy(model(source, before).flatten(0, 1), target.flatten(), ignore_index=left_out)
                accelerator.backward(loss)
                hook.log(loss=loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                if fault != "zero_grad_missing":
                    optimizer.zero_grad()
            if not accelerator.sync_gradients:
                continue
            done += 1
            if done % 55 == 0:
                val_loss, wrong = exact()
                passes.append([done - 1, wrong])
                hook.log(val_loss=val_loss, val_accuracy=1 - wrong)
            if done == updates:
                break
    return ended(hook, updates, passes)


def _bert_masked(fault, seed, chance, options):
    import transformers

    from tocsin.transformers import TocsinCallback
    transformers.utils.logging.set_verbosity_error()
    seen, passes, steps, mask, drawn = [], [], 300, 60, torch.Generator().manual_seed(seed)
    words, _ = _sentences(seed, 2400, 6, 0.85)
    words, held_words = words[:-300], words[-300:]
    config = transformers.BertConfig(vocab_size=61, pad_token_id=0, hidden_size=chance.choice((32, 48)), num_hidden_layers=2, num_attention_heads=4,
                                     intermediate_size=96, max_position_embeddings=14, hidden_dropout_prob=0.0,
                                     attention_probs_dropout_prob=0.0)
    model, other = transformers.BertForMaskedLM(config), transformers.BertForMaskedLM(config).eval()
    if fault == "backbone_frozen":
        model.bert.requires_grad_(False)

    def hidden(rows, broken=None, source=drawn):
        """Inputs with masks, and labels where they stand."""
        chosen = (torch.rand(rows.shape, generator=source) < (0.9 if broken == "all_masked" else 0.15)) & (rows != 0)
        labels = rows.roll(1, 0) if broken == "labels_misaligned" else rows
        return {"input_ids": rows if broken == "nothing_masked" else torch.where(chosen, mask, rows), "attention_mask": (rows != 0).long(),
                "labels": torch.where(~chosen if broken == "labels_elsewhere" else chosen, labels, -100)}

    class Keep(transformers.TrainerCallback):
        """Notes the run's name while the hook is open, and the evaluations."""

        def on_step_end(self, args, state, control, **_):
            seen[:] = seen or [tocsin.get_hook().run]

        def on_evaluate(self, args, state, control, metrics=None, **_):
            passes.append([state.global_step - 1, truth()])
    asked = hidden(held_words, source=torch.Generator().manual_seed(seed + 1))
    fixed = hidden(held_words, fault, torch.Generator().manual_seed(seed + 1))

    def truth():
        other.load_state_dict(model.state_dict())
        with torch.no_grad():
            return float(other(**asked).loss)
    passes.append([0, truth()])
    held = [dict(zip(fixed, one)) for one in zip(*fixed.values())]
    rows = [{"input_ids": one} for one in words]

    def collate(batch):
        together = {name: torch.stack([one[name] for one in batch]) for name in batch[0]}
        return together if "labels" in together else hidden(together["input_ids"], fault)
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder, max_steps=steps, per_device_train_batch_size=chance.choice((32, 48)), per_device_eval_batch_size=150, warmup_steps=20,
            learning_rate=rate(chance.uniform(4e-3, 8e-3), fault), weight_decay=0.01, lr_scheduler_type="linear", eval_strategy="steps",
            eval_steps=50, logging_steps=10, save_strategy="no", report_to=[], log_level="error", use_cpu=True, disable_tqdm=True, seed=seed)
        trainer = transformers.Trainer(model, arguments, data_collator=collate, train_dataset=rows, eval_dataset=held,
                                       callbacks=[TocsinCallback(**options), Keep()])
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
    return seen[0], steps, passes


_JOBS = {
    "gpt_tied": (_gpt_tied, from_start("future_seen", "everything_masked", "unshifted", "rate_hundredfold", "labels_shuffled", "weights_bfloat16",
                                       "zero_grad_missing", schedule_ends_early=0.2)),
    "lora_tuned": (_lora_tuned, from_start("optimizer_without_adapters", "pretrained_missing", "adapters_both_zero", "adapters_scaled",
                                           "labels_misaligned", "rate_thousandth", "class_mislabelled")),
    "seq2seq_padded": (_seq2seq_padded, from_start("padding_counted", "mask_inverted", "answer_given", "future_seen", "labels_misaligned",
                                                   "rate_hundredfold", "zero_grad_missing")),
    "bert_masked": (_bert_masked, from_start("nothing_masked", "all_masked", "labels_elsewhere", "labels_misaligned", "backbone_frozen",
                                             "rate_hundredfold", "rate_thousandth"))}
_NEEDS = {"seq2seq_padded": "accelerate", "bert_masked": "transformers"}
TUNING, FAULTS, fault_names, run = entered({name: made for name, made in _JOBS.items() if importlib.util.find_spec(_NEEDS.get(name, "torch"))})
