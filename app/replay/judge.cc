#include "app/replay/judge.h"

#include <algorithm>
#include <exception>

#include "app/process/rule_processes.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

bool is_uid_beginning(const std::string& text) {
  return text.size() >= 4 && text.find_first_not_of("0123456789abcdef-") == std::string::npos;
}

}  // namespace

RunFilter runs_named(const std::string& run, const std::string& job) {
  if (run.empty()) return nullptr;
  const core::RunUid named = core::run_uid_for(job, run);
  const bool prefix = job.empty() && is_uid_beginning(run);
  return [named, prefix, run](const core::RunUid& uid) {
    return uid == named || (prefix && core::to_text(uid).starts_with(run));
  };
}

Judge::Judge(const embedded::ChosenRules& rules, RunFilter wanted, core::Log* log)
    : rules_(rules.rules),
      options_{rules.cluster, {}, rules.engine, true},
      topic_(ingest::full_topic_name(rules.topic_prefix, core::topic::kTelemetry)),
      wanted_(std::move(wanted)) {
  options_.labels.assign(rules.labels.begin(), rules.labels.end());
  const bool hosted = std::any_of(rules_.rules.begin(), rules_.rules.end(),
                                  [](const auto& rule) { return rule.hosted != nullptr; });
  if (hosted) {
    options_.host =
        std::make_shared<RuleProcesses>(rules.plugins, clock_, log != nullptr ? *log : quiet_);
  }
}

core::Result<std::unique_ptr<Judge>> Judge::create(const embedded::ChosenRules& rules,
                                                   RunFilter wanted, core::Log* log) {
  std::unique_ptr<Judge> judge(new Judge(rules, std::move(wanted), log));
  auto first = rules::Engine::create(judge->rules_, judge->options_);
  if (!first) return first.error();
  return judge;
}

// Its own for each partition: in the time of the records, one partition's clock is not another's.
rules::Engine& Judge::engine(std::int32_t partition) {
  if (newest_ != nullptr && partition == newest_partition_) return *newest_;
  auto& known = engines_[partition];
  if (known == nullptr) known = std::move(*rules::Engine::create(rules_, options_));
  newest_ = known.get();
  newest_partition_ = partition;
  return *newest_;
}

bool Judge::wants(const core::RunUid& run) {
  if (!seen_ || run != run_) {
    seen_ = true;
    run_ = run;
    rows_ = nullptr;
    if (!run.nil() && (!wanted_ || wanted_(run))) {
      rows_ = &judgement_.rows[run];
      newest_time_ = &judgement_.newest[run];
    }
  }
  return rows_ != nullptr;
}

void Judge::handle(const core::RecordView& record) {
  ++judgement_.records;
  rules::Engine& engine = this->engine(record.partition);
  const core::WallTime time = core::wall_time(record.timestamp);
  const rules::RecordRef ref{topic_, record.stream, record.partition, record.offset, time};
  const auto judge = [&](const core::FrameView& frame, const core::FrameBody& body) {
    if (!wants(frame.header().run)) return;
    *rows_ += frame.rows();
    *newest_time_ = std::max(*newest_time_, frame.header().time);
    engine.on_frame(frame, body, ref, time);
  };
  std::string refusal;
  try {
    if (const auto failure = ingest::decode_telemetry(record, json_, judge)) {
      refusal = std::string(ingest::to_string(failure->code)) + ": " + failure->detail;
    }
  } catch (const std::exception& e) {
    refusal = std::string("handler_failed: ") + e.what();
  }
  if (refusal.empty()) return;
  ++judgement_.refused;
  judgement_.refused_newest = std::move(refusal);
  engine.skip(ref);
}

void Judge::collect() {
  for (auto& [partition, engine] : engines_) take(*engine);
}

void Judge::take(rules::Engine& engine) {
  for (const std::int32_t partition : engine.pending()) {
    for (auto& event : engine.take(partition).events) note(event);
  }
}

RunJudgement& Judge::run_judgement(const core::RunRef& run) {
  RunJudgement& out = judgement_.runs[{run.uid, run.attempt}];
  if (!out.told || out.run.job.empty()) out.run = run;
  out.told = true;
  return out;
}

void Judge::note(rules::Event& event) {
  if (auto* issue = std::get_if<core::Issue>(&event)) {
    if (!issue->run.uid.nil()) (void)run_judgement(issue->run);
    judgement_.events.push_back(std::move(*issue));
  } else if (auto* status = std::get_if<core::RuleStatusEvent>(&event)) {
    RunJudgement& of = run_judgement(status->run);
    if (status->status == core::RuleState::error) of.failed.emplace(status->rule, status->reason);
    of.rules[status->rule] = std::move(*status);
  } else if (const auto* job = std::get_if<core::JobEvent>(&event)) {
    RunJudgement& of = run_judgement(job->run);
    if (job->step) of.step = job->step;
    if (job->started_at) of.started = job->started_at;
    if (job->phase == core::JobPhase::started && !of.started) of.started = job->time;
    of.world_size = std::max(of.world_size, job->world_size);
    of.newest = std::max(of.newest, job->time);
    if (job->phase == core::JobPhase::ended) of.outcome = job->outcome;
    if (job->phase == core::JobPhase::started) of.outcome.clear();
  }
}

void Judge::finish() {
  for (auto& [partition, engine] : engines_) {
    engine->end_of_input();
    take(*engine);
  }
  engines_.clear();
  newest_ = nullptr;
  // What nobody spoke of was there all the same.
  for (const auto& [run, rows] : judgement_.rows) {
    const auto first = judgement_.runs.lower_bound({run, 0});
    if (first != judgement_.runs.end() && first->first.first == run) continue;
    judgement_.runs[{run, 1}].run.uid = run;
  }
  for (const auto& [run, time] : judgement_.newest) {
    auto last = judgement_.runs.upper_bound({run, UINT32_MAX});
    if (last == judgement_.runs.begin() || (--last)->first.first != run) continue;
    last->second.newest = std::max(last->second.newest, core::wall_time(time));
  }
}

}  // namespace tocsin::app
