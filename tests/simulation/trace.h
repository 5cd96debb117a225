// What happened, line by line, for a person who replays a seed; and the product's own log.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/log.h"
#include "tests/simulation/clock.h"

namespace tocsin::simulation {

/// Counts events always, prints them when asked to.
class Trace {
 public:
  Trace(const SimulatedClock& clock, bool print)
      : clock_(clock), start_(clock.monotonic()), print_(print) {}

  [[nodiscard]] bool prints() const noexcept { return print_; }
  /// "+12.345 who: what".
  void say(std::string_view who, const std::string& what);
  /// A fault of this kind was injected.
  void fault(const std::string& kind, std::string_view who, const std::string& what);
  [[nodiscard]] const std::map<std::string, std::uint64_t>& faults() const { return faults_; }
  [[nodiscard]] core::Duration elapsed() const { return clock_.monotonic() - start_; }

 private:
  const SimulatedClock& clock_;
  core::Duration start_;
  bool print_;
  std::map<std::string, std::uint64_t> faults_;
};

/// The log of one process.
class TraceLog final : public core::Log {
 public:
  TraceLog(Trace& trace, std::string who) : trace_(trace), who_(std::move(who)) {}
  void write(core::Level level, std::string_view event,
             std::initializer_list<core::Field> fields) override;

 private:
  Trace& trace_;
  std::string who_;
};

}  // namespace tocsin::simulation
