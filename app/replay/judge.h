// The engine over recorded telemetry: records in, what it found out. In the time of the records, on
// one thread, without any effect: nothing is written, nobody is told, no run is stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/issue.h"
#include "core/log.h"
#include "core/record.h"
#include "core/result.h"
#include "core/system_clock.h"
#include "ingest/ingest.h"
#include "rules/embedded/embedded.h"
#include "rules/rules.h"

namespace tocsin::app {

/// One attempt of a run as the recording has it.
struct RunJudgement {
  core::RunRef run;
  bool told = false;    // an event speaks of this attempt
  std::string outcome;  // how it ended; empty: the recording has no end of it
  std::optional<core::WallTime> started;
  std::optional<std::int64_t> step;
  std::uint32_t world_size = 0;                        // workers; 0: not known
  core::WallTime newest{};                             // of what was recorded of it
  std::map<std::string, core::RuleStatusEvent> rules;  // by name: the newest status
  std::map<std::string, std::string> failed;           // by name: why a rule first failed
};

struct Judgement {
  std::vector<core::Issue> events;  // firing, firing again, resolved: as they were decided
  std::map<std::pair<core::RunUid, std::uint32_t>, RunJudgement> runs;  // by uid and attempt
  std::map<core::RunUid, std::uint64_t> rows;                           // judged, by run
  std::map<core::RunUid, std::int64_t> newest;                          // frame of each, UTC ns
  std::uint64_t records = 0;
  std::uint64_t refused = 0;  // records that hold no telemetry
  std::string refused_newest;
};

using RunFilter = std::function<bool(const core::RunUid&)>;

/// The run of this uid or of the beginning of one, or with `job` of this name; null when both are
/// empty: all runs.
RunFilter runs_named(const std::string& run, const std::string& job);

class Judge {
 public:
  /// `wanted`: runs to be judged; null: all. invalid_argument: two rules of one name.
  /// Rules in Python are processes of their own here too; `log` gets what they print.
  static core::Result<std::unique_ptr<Judge>> create(const embedded::ChosenRules& rules,
                                                     RunFilter wanted, core::Log* log = nullptr);

  /// A record of topic telemetry, in the order of its stream. Each partition is judged by itself.
  void handle(const core::RecordView& record);
  /// Takes what was decided so far: call it now and then, so that memory stays small.
  void collect();
  /// The recording is over: judges what waits for a later record.
  void finish();

  [[nodiscard]] const Judgement& judgement() const { return judgement_; }

 private:
  Judge(const embedded::ChosenRules& rules, RunFilter wanted, core::Log* log);
  rules::Engine& engine(std::int32_t partition);
  bool wants(const core::RunUid& run);
  void take(rules::Engine& engine);
  void note(rules::Event& event);
  RunJudgement& run_judgement(const core::RunRef& run);

  core::NullLog quiet_;
  core::SystemClock clock_;
  const rules::RulesConfig rules_;
  rules::EngineOptions options_;
  const std::string topic_;
  const RunFilter wanted_;
  std::map<std::int32_t, std::unique_ptr<rules::Engine>> engines_;
  rules::Engine* newest_ = nullptr;  // of the partition read last
  std::int32_t newest_partition_ = -1;
  core::RunUid run_;                     // of the frame before
  std::uint64_t* rows_ = nullptr;        // of that run; null: not wanted, or none yet
  std::int64_t* newest_time_ = nullptr;  // beside rows_
  bool seen_ = false;
  ingest::JsonScalarDecoder json_;
  Judgement judgement_;
};

}  // namespace tocsin::app
