// The training side: ranks that publish frames as the hook does, crash, hang and come again, and
// what the network does to their records.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actions/actions.h"
#include "ingest/ingest.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/clock.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/trace.h"

namespace tocsin::simulation {

/// What the ranks are given; everything pointed to outlives them.
struct TrainingGround {
  MemoryBroker* broker = nullptr;
  SimulatedClock* clock = nullptr;
  Trace* trace = nullptr;
  const Scenario* scenario = nullptr;
};

/// A stop that had an effect on a process.
struct Stopped {
  core::RunUid run;
  std::size_t launch = 0;  // of the run: which start of its processes
  std::uint32_t rank = 0;
  std::string by;           // command id, or "SIGTERM", "SIGKILL"
  std::string event_id;     // the issue that the command names
  core::WallTime opened{};  // when the process opened, by its clock
};

/// One process of one launch.
class TrainingRank {
 public:
  enum class State { waiting, running, hung, over };

  TrainingRank(const TrainingGround& ground, const RunPlan& run, std::size_t launch,
               std::uint32_t rank, int pid, std::uint64_t pid_start, Random random);

  /// Does what is due.
  void step();
  /// A signal from outside; true when the process was there.
  bool signal(int number, std::vector<Stopped>& stopped);
  /// Its records are still on their way, or it still works.
  [[nodiscard]] bool busy() const { return state_ != State::over || !network_.empty(); }
  [[nodiscard]] bool alive() const { return state_ == State::running || state_ == State::hung; }
  /// Faults end: what is on its way arrives, what hangs is killed by its owner.
  void calm();

  [[nodiscard]] actions::ProcessFence fence() const;
  [[nodiscard]] core::RunUid uid() const { return uid_; }
  [[nodiscard]] std::size_t launch() const { return launch_; }
  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint64_t incarnation() const { return incarnation_; }
  [[nodiscard]] const std::string& worker() const { return worker_; }
  /// Grows with every word to the agent of its node: when it opens, and with every heartbeat.
  [[nodiscard]] std::uint64_t announced() const { return announced_; }
  /// The newest stop command of its run that it obeyed.
  void read_commands(std::vector<Stopped>& stopped);

 private:
  struct OnTheWay {
    core::Duration arrives{};
    core::OutRecord record;
  };
  [[nodiscard]] core::FrameHeader header();
  void open();
  void train();
  void lifecycle(core::Lifecycle event);
  void end(const std::string& outcome, int exit_code);
  void send();
  void deliver();
  void answer(const core::Command& command, const std::string& phase, const std::string& reason);
  [[nodiscard]] core::SummaryRow row(std::size_t tensor) const;

  TrainingGround ground_;
  const RunPlan& run_;
  const LaunchPlan& plan_;
  std::size_t launch_;
  std::uint32_t rank_;
  int pid_;
  std::uint64_t pid_start_;
  Random random_;
  core::RunUid uid_;
  std::string worker_;
  ingest::FrameWriter writer_;
  State state_ = State::waiting;
  core::Duration next_{};       // steady: of the next step
  core::Duration heartbeat_{};  // steady: of the next heartbeat
  std::int64_t opened_ = 0;     // boot-time ns
  core::WallTime opened_at_{};  // the same by its wall clock
  std::uint64_t incarnation_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t announced_ = 0;
  std::int64_t step_ = 0;
  std::int64_t global_step_ = 0;
  bool calm_ = false;
  std::int64_t commands_end_ = -1;
  std::map<std::string, std::uint64_t> handled_;  // command id → revision
  std::deque<OnTheWay> network_;
};

inline constexpr const char* kHost = "node-a";
inline constexpr const char* kBootId = "8a1e2f30-0000-4000-8000-000000000001";

}  // namespace tocsin::simulation
