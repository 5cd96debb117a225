// The whole product in one thread: processes, training, receivers and a broker, moved by a seed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/broker.h"
#include "tests/simulation/deciders.h"
#include "tests/simulation/mutations.h"
#include "tests/simulation/node_agent.h"
#include "tests/simulation/people.h"
#include "tests/simulation/process.h"
#include "tests/simulation/receivers.h"
#include "tests/simulation/roles.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/silencers.h"
#include "tests/simulation/workers.h"

namespace tocsin::simulation {

class World {
 public:
  World(Scenario scenario, Mutation mutation, bool print);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Lives through the faults, calms down, drains. Problems found on the way: see problems().
  void run();

  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  /// What the wall clock says, jumps included.
  [[nodiscard]] core::WallTime now() const { return clock_.now(); }
  [[nodiscard]] MemoryBroker& broker() { return broker_; }
  /// Everything that ever was in the topic, partition by partition, also what retention took.
  [[nodiscard]] std::vector<StoredRecord> telemetry() const;
  [[nodiscard]] bool retention_struck() const { return !expired_.empty(); }
  [[nodiscard]] const Receivers& receivers() const { return receivers_; }
  [[nodiscard]] const People& people() const { return people_; }
  [[nodiscard]] const Silencers& silencers() const { return silencers_; }
  [[nodiscard]] const Deciders& deciders() const { return deciders_; }
  /// When the faults were over, by the wall clock.
  [[nodiscard]] core::WallTime calm_since() const { return calm_since_; }
  [[nodiscard]] const std::vector<Stopped>& stopped() const { return stopped_; }
  [[nodiscard]] const Trace& trace() const { return trace_; }
  [[nodiscard]] const rules::RulesConfig& rules() const { return roles_.rules; }
  /// Every stop command that was ever there, by id.
  [[nodiscard]] const std::map<std::string, core::Command>& commands() const { return commands_; }
  /// Launch of the process that sends frames with this header.
  [[nodiscard]] std::optional<std::size_t> launch_of(const core::FrameHeader& header) const;
  /// What could be seen to be wrong while it ran.
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

 private:
  void make_processes();
  void make_ranks();
  actions::Observed signal(const actions::ProcessFence& fence, int number);
  void note_commands();
  Fault fault(std::string_view client, Call call);
  void move_time(core::Duration most);
  void do_harm();
  void retain();
  void reload();
  void freeze(std::string_view client, core::Duration length);
  void turn();
  void drain();
  [[nodiscard]] bool drained();
  [[nodiscard]] bool finished(const std::string& notification_id);

  Scenario scenario_;
  Mutation mutation_;
  SimulatedClock clock_;
  std::unique_ptr<core::Clock> wrong_clock_;  // of a mistake
  Trace trace_;
  core::NullTelemetry telemetry_;
  MemoryBroker broker_;
  Random order_, harm_, chance_, late_, reload_;
  Receivers receivers_;
  RoleParts roles_;
  std::map<std::string, core::Command> commands_;
  std::int64_t commands_end_ = 0;
  std::vector<std::unique_ptr<TrainingRank>> ranks_;
  NodeAgent node_agent_;
  People people_;
  Silencers silencers_;
  Deciders deciders_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<StoredRecord> expired_;                              // telemetry that retention took
  std::map<std::string, core::Duration, std::less<>> away_until_;  // client → steady
  std::vector<Stopped> stopped_;
  std::vector<std::string> problems_;
  bool calm_ = false;
  core::WallTime calm_since_{};
};

}  // namespace tocsin::simulation
