#include "rules/run/dictionaries.h"

#include <algorithm>
#include <cstring>

namespace tocsin::rules {

void Dictionaries::on_dictionary(Run& run, const core::Dictionary& names) {
  for (const core::NamedEntry& entry : names) {
    const Name* known = run.names.table.find(entry.hash);
    if (known != nullptr && known->text == entry.name) continue;
    if (run.names.table.size() >= 2 * std::size_t{ctx_.options.config.max_units_per_run}) return;
    learn(run, entry);
  }
}

void Dictionaries::learn(Run& run, const core::NamedEntry& entry) {
  if (entry.attrs_wrong) ++ctx_.stats.bad_attrs;
  // JSON producers have no start record: job and labels come with their worker's name.
  if (run.job.name.empty()) run.job.name = entry.attrs.job;
  if (!run.job.started && !entry.attrs.labels.empty())
    run.job.labels = entry.attrs.labels.entries();
  Name name;
  name.text = entry.name;
  name.dtype = entry.dtype;
  name.role = entry.role;
  name.collections = entry.attrs.collections;
  name.direction = entry.attrs.direction;
  name.op_type = entry.attrs.op_type;
  name.shape.resize(entry.dims_bytes.size() / sizeof(std::int64_t));
  if (!name.shape.empty()) {
    std::memcpy(name.shape.data(), entry.dims_bytes.data(), entry.dims_bytes.size());
  }
  if (entry.type == core::DictionaryType::worker || entry.type == core::DictionaryType::node) {
    for (std::uint32_t w = 0; w < run.workers.size(); ++w) {
      Worker& worker = run.workers[w];
      if (worker.name_hash != entry.hash || worker.named) continue;
      ctx_.part->cut.touch_worker(run, w);
      worker.name = name.text;
      worker.named = true;
    }
  }
  ctx_.part->cut.touch_name(run, run.names.table.index_of(entry.hash));
  const bool lasting =
      entry.type == core::DictionaryType::series || entry.type == core::DictionaryType::node;
  run.names.table.set(entry.hash, std::move(name), lasting);
  ++run.names.version;
}

}  // namespace tocsin::rules
