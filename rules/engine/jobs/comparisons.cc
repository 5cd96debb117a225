#include "rules/engine/jobs/comparisons.h"

#include <utility>

#include "rules/engine/compare/families.h"
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
      if (!run->job.ended) return 1 + part.families.times_met();
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

std::optional<Comparisons::Subject> Comparisons::subject_of(const RuleTable& rules,
                                                            std::string_view key) {
  for (const std::uint32_t number : rules.comparing) {
    const RuleTable::Evaluated& one = rules.evaluated[number];
    const std::string prefix = comparison_key(*one.program->other(), one.identity);
    if (!key.starts_with(prefix)) continue;
    return Subject{*one.program->other(), number, key.substr(prefix.size())};
  }
  if (rules.families.empty()) return std::nullopt;
  const std::size_t uid_ends = key.find('/');
  const auto uid = core::parse_run_uid(key.substr(0, uid_ends));
  if (!uid) return std::nullopt;
  for (const std::uint32_t number : rules.families) {
    const std::string prefix = comparison_key(*uid, rules.evaluated[number].heritage);
    if (key.starts_with(prefix)) return Subject{*uid, number, key.substr(prefix.size()), true};
  }
  return std::nullopt;
}

std::optional<Entry> Comparisons::news(const Turn& turn, const Comparison& record) {
  const auto subject = subject_of(turn.rules(), record.key);
  if (!subject) return std::nullopt;
  const EvaluatorParts* parts = nullptr;
  if (subject->family) {
    const Family* const family = turn.part.families.find(subject->run);
    if (family != nullptr) parts = &family->evaluators;
  } else if (const auto run = turn.part.runs.find({subject->run, 0}); run != turn.part.runs.end()) {
    if (read_here(*run->second)) return std::nullopt;
    parts = &run->second->evaluators;
  }
  const bool judged = parts != nullptr && has_evaluator(*parts, subject->number);
  if (subject->family && !judged) return std::nullopt;  // no run here is of that family
  if (judged ? (*parts)[subject->number].evaluator->knows(subject->key, record.value.has_value())
             : !record.value.has_value()) {
    return std::nullopt;
  }
  Entry entry;
  entry.what = Entry::What::learn;
  entry.run = {subject->run, 0};
  entry.now = turn.now;
  entry.rules = record.key + '\n' + (record.value ? kThere : kGone) + record.value.value_or("");
  return entry;
}

void Comparisons::apply(const Turn& turn, const Entry& entry) {
  const std::string_view bytes = entry.rules;
  const std::size_t line = bytes.find('\n');
  if (line == std::string_view::npos || line + 1 >= bytes.size()) return;
  const auto subject = subject_of(turn.rules(), bytes.substr(0, line));
  if (!subject) return;  // the rules are others by now
  ++stats_.comparisons_learned;
  std::optional<std::string_view> value;
  if (bytes[line + 1] == kThere) value = bytes.substr(line + 2);
  if (subject->family) {
    Family& family = Families::open(turn.part, subject->run, entry.now);
    turn.part.cut.touch_head(family);
    return evaluator_of(turn.part, family, subject->number).learn(subject->key, value);
  }
  Run& run = run_of(turn, subject->run, entry.now);
  turn.part.cut.touch_head(run);
  evaluator_of(turn.part, run, subject->number).learn(subject->key, value);
  evaluations_.tell_others(turn, run);
}

// A run that is read elsewhere stands here as one that is over.
Run& Comparisons::run_of(const Turn& turn, const core::RunUid& uid, std::int64_t now) {
  std::unique_ptr<Run>& run = turn.part.runs[{uid, 0}];
  if (run) return *run;
  run = std::make_unique<Run>();
  run->id = {uid, 0};
  run->partition = turn.part.number;
  run->life = run->names.life = turn.part.cut.fresh_life();
  run->course.first_seen = run->course.last_arrival = run->course.last_any = now;
  run->issues.progress.resize(turn.rules().all.size());
  run->job.ended = true;
  return *run;
}

}  // namespace tocsin::rules
