// The engine inside the process that it watches: records in from the hook's own queue, judged on
// one thread of its own, issues kept for whoever asks. Effects: commands to this one run.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/mutex.h"
#include "core/record.h"
#include "ingest/ingest.h"
#include "rules/embedded/chosen_rules.h"
#include "rules/rules.h"

namespace tocsin::embedded {

/// Who may stop the run.
class StopChoice {
 public:
  /// Empty: nobody; a severity: that and above; else names of rules with commas between.
  /// invalid_argument: a name that is no rule of `rules`.
  static core::Result<StopChoice> parse(const std::string& text, const rules::RulesConfig& rules);
  [[nodiscard]] bool asks(const core::Issue& issue) const;

 private:
  std::optional<core::Severity> from_;
  std::set<std::string> rules_;
};

/// One that may be asked for, as the caller sees it.
struct KeptIssue {
  core::Issue issue;
  std::string text;  // one sentence
  bool told = true;  // worth a line of its own
};

struct LocalJudgeOptions {
  ChosenRules rules;
  StopChoice stop;
  std::uint64_t queue_bytes = 64ULL << 20;
  /// A record of topic `commands`; called on the judging thread, never after close().
  std::function<void(const core::OutRecord&)> command;
};

/// What it did so far; the processor time of the judging thread is its cost to the training.
struct JudgeCounts {
  std::uint64_t records = 0;
  std::uint64_t refused = 0;  // records that hold no telemetry
  std::uint64_t dropped = 0;  // the queue was full
  std::uint64_t waiting = 0;
  std::uint64_t issues = 0;
  std::uint64_t issues_left_out = 0;  // beyond kMostIssues: judged, and not kept
  std::uint64_t stops = 0;
  core::Duration cost{0};
  std::size_t rules = 0;
  std::string
      without_receivers;  // "rule (receiver, …), …": whose `actions` nobody carries out here
  std::string error;      // the newest refusal, or what ended the judging; empty: nothing
};

/// Thread-safe. Held by its thread too: close() never waits for a rule that hangs.
class LocalJudge : public std::enable_shared_from_this<LocalJudge> {
 public:
  static constexpr std::size_t kMostIssues = 10'000;

  /// `clock` outlives the judge. invalid_argument: two rules of one name.
  static core::Result<std::shared_ptr<LocalJudge>> create(LocalJudgeOptions options,
                                                          const core::Clock& clock);
  void start();

  /// Copies. False: dropped, the queue is full.
  bool offer(std::string_view key, std::string_view value, std::int64_t time);
  /// Until everything offered before is judged; false: the time was over.
  bool catch_up(std::chrono::milliseconds timeout);
  /// Nothing more comes; false: the time was over, it goes on.
  bool finish(std::chrono::milliseconds timeout);
  void close();

  [[nodiscard]] std::vector<KeptIssue> issues(std::size_t since) const;
  bool wait(std::size_t seen, std::chrono::milliseconds timeout);
  /// wait() is over, now and later.
  void wake();
  [[nodiscard]] JudgeCounts counts() const;
  /// JudgeCounts::cost alone.
  [[nodiscard]] core::Duration cost() const noexcept { return core::Duration(cost_.load()); }

 private:
  struct Queued {
    std::string key;
    std::string value;
    std::int64_t time = 0;
  };

  LocalJudge(LocalJudgeOptions options, const core::Clock& clock);
  void run();
  bool turn();
  void judge(const Queued& record);
  void collect();
  bool worth_telling(const core::Issue& issue);
  void note(rules::Event& event);
  void consider_stop(const core::Issue& issue);
  void send(const core::OutRecord& record);

  LocalJudgeOptions options_;
  const core::Clock& clock_;
  const std::string topic_;

  mutable core::Mutex mutex_;
  core::CondVar changed_;
  std::deque<Queued> queue_ GUARDED_BY(mutex_);
  std::uint64_t bytes_ GUARDED_BY(mutex_) = 0;
  std::uint64_t offered_ GUARDED_BY(mutex_) = 0;
  std::uint64_t judged_ GUARDED_BY(mutex_) = 0;
  bool finishing_ GUARDED_BY(mutex_) = false;
  bool finished_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;
  bool awake_ GUARDED_BY(mutex_) = false;  // nobody waits for issues
  std::vector<KeptIssue> issues_ GUARDED_BY(mutex_);
  JudgeCounts counts_ GUARDED_BY(mutex_);

  std::atomic<std::int64_t> cost_{0};  // nanoseconds
  core::Mutex command_mutex_;  // held while a command is handed over: close() waits for that alone
  bool commands_ GUARDED_BY(command_mutex_) = true;

  // ---- of the judging thread
  std::unique_ptr<rules::Engine> engine_;
  ingest::JsonScalarDecoder json_;
  std::int64_t offset_ = 0;
  std::map<std::pair<core::RunUid, std::uint32_t>, core::JobEvent> jobs_;
  std::set<std::pair<core::RunUid, std::uint32_t>> stopped_;
  std::set<std::string> told_;  // keys of issues that a person was told of
};

/// "rule (receiver, …), …" of the rules that name receivers.
std::string without_receivers(const rules::RulesConfig& rules);

/// "critical exploding_tensor at step 30: 12 NaN in gradient/fc.weight".
std::string issue_sentence(const core::Issue& issue);

}  // namespace tocsin::embedded
