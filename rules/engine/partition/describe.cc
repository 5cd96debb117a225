#include "rules/engine/partition/describe.h"

#include <algorithm>
#include <array>

namespace tocsin::rules {

std::string name_of(const Run& run, std::uint64_t hash) {
  if (const Name* name = run.names.table.find(hash)) return name->text;
  std::array<std::uint8_t, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(hash >> (56 - 8 * i));
  }
  return core::hex(bytes);
}

bool withholds_tensors(const Run& run, const Program& program) {
  return run.course.shards > 1 && program.tensor_use() == TensorUse::several;
}

bool withholds_run(const Run& run, const Program& program) {
  return withholds_tensors(run, program) && (program.inputs() & input::kRows) == 0 &&
         !program.follows.empty();
}

bool wants_worker(const Common& common, const Worker& worker) {
  return common.workers.empty() || std::find(common.workers.begin(), common.workers.end(),
                                             worker.name) != common.workers.end();
}

core::RunRef run_ref(const Run& run) {
  core::RunRef out;
  out.uid = run.id.uid;
  out.attempt = run.attempt;
  out.job = run.job.name;
  out.platform = run.job.platform;
  out.ref = run.job.platform_ref;
  return out;
}

std::string unit_text(const Open& open) {
  std::vector<std::pair<std::string, std::string>> labels = open.unit;
  if (!open.kind.empty()) labels.emplace_back("kind", open.kind);
  std::sort(labels.begin(), labels.end());
  std::string text;
  for (const auto& [name, value] : labels) {
    if (!text.empty()) text += '\x1e';
    text += name + "=" + value;
  }
  return text;
}

Candidate candidate_of(const Run& run, std::uint32_t number) {
  const Worker& worker = run.workers[number];
  Candidate out;
  out.worker = worker.name;
  out.worker_named = worker.named;
  out.rank = worker.rank;
  out.node = worker.node;
  out.job = run.job.name;
  out.labels = run.job.labels;
  return out;
}

Candidate candidate_of(const Run& run, const Roster& roster, std::size_t number) {
  Candidate out = candidate_of(run, roster.worker);
  out.name = run.workers[roster.worker].about(roster.slots[number].name, run.names.table);
  out.role = static_cast<core::Role>(roster.types[number] >> 8);
  if (out.role == core::Role::other && out.name != nullptr) out.role = out.name->role;
  out.dtype = static_cast<core::Dtype>(roster.types[number] & 0xFF);
  out.mode = roster.mode;
  out.scalar = roster.scalars;
  return out;
}

}  // namespace tocsin::rules
