// People of a simulated world who say a word on stops that wait: some they approve, some they reject,
// some they leave alone. What was asked, said and sent is kept for the checks.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/stop_request.h"
#include "core/time.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/clock.h"
#include "tests/simulation/random.h"
#include "tests/simulation/trace.h"

namespace tocsin::simulation {

/// What somebody said of a stop that waited, in reply to one request.
struct StopWord {
  std::string id;           // of the stop
  core::WallTime asked_at;  // which request of it: it may be asked again
  bool approves = false;
  core::WallTime said{};  // by the wall clock
  core::Duration at{};    // steady
};

/// A stop that came to the topic of commands.
struct SentStop {
  std::string id;
  std::uint64_t revision = 1;
  std::string approved_by;  // as the command has it
  core::WallTime issued_at{};
  core::Duration at{};  // steady: when it was seen there
};

inline constexpr const char* kDecider = "grace";

class Deciders {
 public:
  /// `rate`: share of turns in which somebody looks at what waits.
  Deciders(MemoryBroker& broker, const SimulatedClock& clock, Trace& trace, Random random,
           double rate)
      : broker_(broker), clock_(clock), trace_(trace), random_(random), rate_(rate) {}

  /// Somebody looks at what waits, now and then.
  void step();
  /// Notes which stops were sent since the last call.
  void look();
  [[nodiscard]] const std::vector<StopWord>& words() const { return words_; }
  [[nodiscard]] const std::vector<SentStop>& sent() const { return sent_; }
  /// All requests that were ever written, in the order of the topic; people's words are among them.
  [[nodiscard]] std::vector<core::StopRequest> requests() const;

 private:
  void decide(const core::StopRequest& request);

  MemoryBroker& broker_;
  const SimulatedClock& clock_;
  Trace& trace_;
  Random random_;
  double rate_;
  std::vector<StopWord> words_;
  std::vector<SentStop> sent_;
  std::set<std::pair<std::string, core::WallTime>> answered_;  // or left alone for good
  std::set<std::pair<std::int32_t, std::int64_t>> seen_;       // where commands stand
  std::int64_t end_ = 0;                                       // of the topic of commands
};

}  // namespace tocsin::simulation
