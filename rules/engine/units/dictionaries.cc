#include "rules/engine/units/dictionaries.h"

#include <algorithm>
#include <cstring>

#include "core/limits.h"

namespace tocsin::rules {
namespace {

Name named(const core::NamedEntry& entry) {
  Name name;
  name.text = entry.name;
  name.dtype = entry.dtype;
  name.role = entry.role;
  name.collections = entry.attrs.collections;
  name.direction = entry.attrs.direction;
  name.op_type = entry.attrs.op_type;
  name.axis = entry.attrs.axis;
  name.shape.resize(entry.dims_bytes.size() / sizeof(std::int64_t));
  if (!name.shape.empty()) {
    std::memcpy(name.shape.data(), entry.dims_bytes.data(), entry.dims_bytes.size());
  }
  return name;
}

}  // namespace

void Dictionaries::on_dictionary(const Turn& turn, Run& run, std::uint32_t worker,
                                 const core::Dictionary& names) {
  for (const core::NamedEntry& entry : names) {
    const Name* known = run.names.table.find(entry.hash);
    if (known != nullptr && known->text == entry.name) {
      if (entry.type == core::DictionaryType::tensor) learn_own(turn, run, worker, *known, entry);
      continue;
    }
    std::string text(entry.name);
    if (!core::bound_name(text)) {
      if (!learn(turn, run, entry)) return;
      continue;
    }
    core::NamedEntry fitting = entry;
    fitting.name = text;
    if (known != nullptr && known->text == text) {
      if (entry.type == core::DictionaryType::tensor) learn_own(turn, run, worker, *known, fitting);
      continue;
    }
    ++stats_.bad_attrs;
    if (!learn(turn, run, fitting)) return;
  }
}

// Workers may hold tensors of one name that differ, such as parts of a sharded one: each goes by its
// own word, so that nothing depends on who spoke first. A tensor may also change.
void Dictionaries::learn_own(const Turn& turn, Run& run, std::uint32_t worker, const Name& known,
                             const core::NamedEntry& entry) {
  const Name name = named(entry);
  std::map<std::uint64_t, Name>& own = run.workers[worker].own_names;
  const auto found = own.find(entry.hash);
  if ((found == own.end() ? known : found->second) == name) return;
  if (found == own.end() && own.size() >= options_.config.max_units_per_run) return;
  turn.part.cut.touch_worker(run, worker);
  own[entry.hash] = name;
  ++run.names.version;
}

bool Dictionaries::learn(const Turn& turn, Run& run, const core::NamedEntry& entry) {
  if (run.names.table.size() >= 2 * std::size_t{options_.config.max_units_per_run}) return false;
  if (entry.attrs_wrong) ++stats_.bad_attrs;
  // JSON producers have no start record: job and labels come with their worker's name.
  if (run.job.name.empty() && !entry.attrs.job.empty()) {
    run.job.name = entry.attrs.job;
    stats_.bad_attrs += core::bound_text(run.job.name, core::limit::kJobBytes) ? 1U : 0U;
  }
  if (!run.job.started && !entry.attrs.labels.empty()) {
    core::Labels labels = entry.attrs.labels;
    const core::LabelsBound bound = core::bound_run_labels(labels);
    stats_.bad_attrs += bound.changed + bound.left_out;
    run.job.labels = labels.entries();
  }
  Name name = named(entry);
  if (entry.type == core::DictionaryType::worker || entry.type == core::DictionaryType::node) {
    for (std::uint32_t w = 0; w < run.workers.size(); ++w) {
      Worker& worker = run.workers[w];
      if (worker.name_hash != entry.hash || worker.named) continue;
      turn.part.cut.touch_worker(run, w);
      worker.name = name.text;
      worker.named = true;
    }
  }
  turn.part.cut.touch_name(run, run.names.table.index_of(entry.hash));
  const bool lasting =
      entry.type == core::DictionaryType::series || entry.type == core::DictionaryType::node;
  run.names.table.set(entry.hash, std::move(name), lasting);
  ++run.names.version;
  return true;
}

}  // namespace tocsin::rules
