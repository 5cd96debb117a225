// `tocsin run` judges what its command writes, where nobody else does, and says at the end what was found.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "app/cli/run_command.h"
#include "collectors/hook/hook.h"
#include "core/log.h"
#include "core/telemetry.h"
#include "rules/embedded/embedded.h"

namespace tocsin::app {

/// What was found in the runs below one `tocsin run`.
struct RunVerdict {
  core::RunUid run;
  std::string job;
  std::size_t rules = 0;
  std::int64_t steps = 0;                // train steps that were judged
  std::vector<core::Issue> first_signs;  // those that fired and followed from no other, in order
  std::size_t issues = 0;                // that fired, all of them
};
/// One sentence per run: "no issue found; 43 rules judged 500 steps", or what fired, the first sign first.
std::string verdict_sentence(const RunVerdict& verdict);

/// The rules of the configuration, else the group `default`, on a thread of their own beside the journal: nothing is
/// written to it, and the training never waits for them.
class RunJudge {
 public:
  using Reported = std::function<LaunchReport()>;
  using Say = std::function<void(const std::string&)>;

  /// Null, with `why` for people: there is nothing to judge by. Before the command starts: what is there then is
  /// no business of this launch.
  static std::unique_ptr<RunJudge> create(const hook::Settings& settings,
                                          const std::string& config_file, Reported reported,
                                          Say say, std::string& why);
  ~RunJudge();
  RunJudge(const RunJudge&) = delete;
  RunJudge& operator=(const RunJudge&) = delete;

  /// After the command was started.
  void start();
  /// The command has ended: judges what is left, for some seconds at most.
  std::vector<RunVerdict> finish();

 private:
  RunJudge(const hook::Settings& settings, Reported reported, Say say);
  bool open();
  void run(const std::stop_token& stop);
  /// Takes what is there; true: that was all.
  bool read(std::chrono::milliseconds timeout);
  void count_steps(const core::RecordView& record);
  void tell();
  [[nodiscard]] std::vector<RunVerdict> verdicts() const;

  const hook::Settings settings_;
  const Reported reported_;
  const Say say_;
  core::NullLog log_;
  core::NullTelemetry telemetry_;
  std::shared_ptr<embedded::LocalJudge> judge_;
  std::unique_ptr<ingest::Transport> transport_;
  std::unique_ptr<core::RecordSource> source_;
  bool was_there_ = false;  // the journal, before the command
  std::size_t told_ = 0;    // issues
  std::map<core::RunUid, std::int64_t> steps_;
  std::jthread thread_;  // last: it uses what stands above
};

}  // namespace tocsin::app
