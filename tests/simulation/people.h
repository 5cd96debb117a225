// People of a simulated world: they read what they are told, acknowledge some of it, and take some of
// that back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/broker.h"
#include "tests/simulation/clock.h"
#include "tests/simulation/random.h"
#include "tests/simulation/trace.h"

namespace tocsin::simulation {

/// Somebody took on what a message had told.
struct TakenOn {
  std::string id;
  std::map<std::string, std::uint64_t> episodes;  // issue key → the episode that was told
  core::WallTime at{};
  bool taken_back = false;
};

class People {
 public:
  /// `rate`: share of turns in which somebody does something.
  People(MemoryBroker& broker, const SimulatedClock& clock, Trace& trace, Random random,
         double rate)
      : broker_(broker), clock_(clock), trace_(trace), random_(random), rate_(rate) {}

  void step();
  [[nodiscard]] const std::vector<TakenOn>& acknowledgements() const { return taken_on_; }

 private:
  void acknowledge();
  void take_back();

  MemoryBroker& broker_;
  const SimulatedClock& clock_;
  Trace& trace_;
  Random random_;
  double rate_;
  std::vector<TakenOn> taken_on_;
};

}  // namespace tocsin::simulation
