// The agent of the training's node, as far as it speaks of the training: it sweeps, sees processes
// end, and says so. The real one is app/stages/collect; sockets, pidfds and /proc are modelled: a
// process announces itself when its hook opens and with every heartbeat, and its end is seen but not
// how it ended. It lives and dies with the process `agent-0`.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "app/stages/stops_here.h"
#include "ingest/ingest.h"
#include "tests/simulation/random.h"
#include "tests/simulation/workers.h"

namespace tocsin::simulation {

class NodeAgent {
 public:
  using Ranks = std::vector<std::unique_ptr<TrainingRank>>;
  /// `ranks` outlives it.
  NodeAgent(const TrainingGround& ground, const Ranks& ranks, Random random)
      : ground_(ground), ranks_(ranks), random_(random) {}

  /// A new process of it: nothing is known, what was not sent is gone. `here`: of its stop agent.
  void begin(std::shared_ptr<const app::StopsHere> here);
  /// Does what is due; not called while it is dead or frozen.
  void step();

 private:
  /// What is sent about one run: a stream of its own.
  struct Target {
    std::uint64_t sequence = 0;
    std::uint32_t attempt = 1;
    bool named = false;
  };
  struct Watched {
    const TrainingRank* rank = nullptr;
    std::uint64_t incarnation = 0;
  };

  void read_registry();
  void listen();
  void tell_deaths();
  void sweep();
  [[nodiscard]] core::FrameHeader header(const core::RunUid& run, Target& target) const;
  void send(const core::RunUid& run);

  TrainingGround ground_;
  const Ranks& ranks_;
  Random random_;
  ingest::FrameWriter writer_;
  std::shared_ptr<const app::StopsHere> here_;
  std::uint64_t incarnation_ = 0;
  std::map<core::RunUid, Target> targets_;  // runs that live here, as `registry` says
  std::map<const TrainingRank*, std::uint64_t> heard_;
  std::vector<Watched> watched_;
  std::vector<Watched> untold_;  // they are gone
  std::int64_t registry_end_ = -1;
  core::Duration next_sweep_{};
  struct OnTheWay {
    core::Duration leaves{};
    core::OutRecord record;
  };
  std::deque<OnTheWay> out_;
};

}  // namespace tocsin::simulation
