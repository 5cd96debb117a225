#include "rules/engine/jobs/comparisons.h"

#include <utility>

#include "rules/engine/compare/other_runs.h"
#include "rules/engine/partition/evaluators.h"

namespace tocsin::rules {
namespace {

// An entry's bytes: key, whether there is a value, value.
constexpr char kThere = '+';
constexpr char kGone = '-';

bool read_here(const Run& run) { return !run.workers.empty(); }

}  // namespace

std::uint64_t Comparisons::wanted(const PartitionState& part) {
  if (part.silent || part.rules == nullptr) return 0;
  if (!part.rules->families.empty()) {
    for (const auto& [id, run] : part.runs) {
      if (!run->job.ended) return 1 + part.families_met;
    }
  }
  for (const std::uint32_t number : part.rules->comparing) {
    const core::RunUid& other = *part.rules->evaluated[number].program->other();
    for (const auto& [id, run] : part.runs) {
      if (id.uid != other && !run->job.ended) return 1;
    }
  }
  return 0;
}

std::optional<Comparisons::Subject> Comparisons::subject_of(std::string_view key) const {
  for (const std::uint32_t number : ctx_.rules->comparing) {
    const RuleTable::Evaluated& one = ctx_.rules->evaluated[number];
    const std::string prefix = comparison_key(*one.program->other(), one.identity);
    if (!key.starts_with(prefix)) continue;
    return Subject{*one.program->other(), number, key.substr(prefix.size())};
  }
  if (ctx_.rules->families.empty()) return std::nullopt;
  const std::size_t uid_ends = key.find('/');
  const auto uid = core::parse_run_uid(key.substr(0, uid_ends));
  if (!uid) return std::nullopt;
  for (const std::uint32_t number : ctx_.rules->families) {
    const std::string prefix = comparison_key(*uid, ctx_.rules->evaluated[number].heritage);
    if (key.starts_with(prefix)) return Subject{*uid, number, key.substr(prefix.size()), true};
  }
  return std::nullopt;
}

std::optional<Entry> Comparisons::news(const Comparison& record) const {
  const auto subject = subject_of(record.key);
  if (!subject) return std::nullopt;
  const auto found = ctx_.part->runs.find({subject->run, 0});
  const bool known = found != ctx_.part->runs.end();
  if (known && read_here(*found->second)) return std::nullopt;
  const bool judged = known && subject->number < found->second->evaluators.size() &&
                      found->second->evaluators[subject->number].evaluator != nullptr;
  if (subject->family && !judged) return std::nullopt;  // no run here is of that family
  if (judged ? found->second->evaluators[subject->number].evaluator->knows(subject->key,
                                                                           record.value.has_value())
             : !record.value.has_value()) {
    return std::nullopt;
  }
  Entry entry;
  entry.what = Entry::What::learn;
  entry.run = {subject->run, 0};
  entry.now = ctx_.now;
  entry.rules = record.key + '\n' + (record.value ? kThere : kGone) + record.value.value_or("");
  return entry;
}

void Comparisons::apply(const Entry& entry) {
  const std::string_view bytes = entry.rules;
  const std::size_t line = bytes.find('\n');
  if (line == std::string_view::npos || line + 1 >= bytes.size()) return;
  const auto subject = subject_of(bytes.substr(0, line));
  if (!subject) return;  // the rules are others by now
  std::unique_ptr<Run>& run = ctx_.part->runs[{subject->run, 0}];
  if (!run) {
    run = std::make_unique<Run>();
    run->id = {subject->run, 0};
    run->partition = ctx_.part->number;
    run->life = run->names.life = ctx_.part->cut.fresh_life();
    run->course.first_seen = run->course.last_arrival = run->course.last_any = entry.now;
    run->issues.progress.resize(ctx_.rules->all.size());
    run->job.ended = true;
  }
  ctx_.part->cut.touch_head(*run);
  ++ctx_.stats.comparisons_learned;
  std::optional<std::string_view> value;
  if (bytes[line + 1] == kThere) value = bytes.substr(line + 2);
  evaluator_of(ctx_, *run, subject->number).learn(subject->key, value);
  evaluations_.tell_others(*run);
}

}  // namespace tocsin::rules
