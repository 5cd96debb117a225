// People of a simulated world who silence what they do not want to hear: some silences end before the
// world does, some do not, and some are ended early.
#pragma once

#include <string>
#include <vector>

#include "core/issue.h"
#include "core/time.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/clock.h"
#include "tests/simulation/random.h"
#include "tests/simulation/trace.h"

namespace tocsin::simulation {

/// Issues of this rule are kept from people between the two. Times are of the wall clock.
struct Silenced {
  std::string id;
  std::string rule;
  core::WallTime begins{};
  core::WallTime ends{};

  [[nodiscard]] bool holds(const core::Issue& issue, core::WallTime at) const {
    return issue.rule == rule && begins <= at && at < ends;
  }
};

class Silencers {
 public:
  /// `rate`: share of turns in which somebody silences something, or ends a silence.
  Silencers(MemoryBroker& broker, const SimulatedClock& clock, Trace& trace, Random random,
            double rate)
      : broker_(broker), clock_(clock), trace_(trace), random_(random), rate_(rate) {}

  void step();
  [[nodiscard]] const std::vector<Silenced>& silences() const { return silences_; }

 private:
  void write(const Silenced& one);

  MemoryBroker& broker_;
  const SimulatedClock& clock_;
  Trace& trace_;
  Random random_;
  double rate_;
  std::vector<Silenced> silences_;
};

}  // namespace tocsin::simulation
