// Which launch of a run said what, and when: as the log of telemetry has it at the end of a world.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tests/simulation/world.h"

namespace tocsin::simulation {

class LaunchLog {
 public:
  explicit LaunchLog(World& world);

  /// Launch of the process that sent the frame at this offset.
  [[nodiscard]] std::optional<std::size_t> that_sent(std::int32_t partition,
                                                     std::int64_t offset) const;
  [[nodiscard]] std::optional<std::int32_t> partition_of(const core::RunUid& run) const;
  /// Those that said something, in their order.
  [[nodiscard]] std::vector<std::pair<core::RunUid, std::size_t>> heard_of() const;

  /// Nothing in the keys of two launches tells them apart.
  [[nodiscard]] bool keys_agree(const core::RunUid& run, std::size_t one, std::size_t two) const;
  /// Two launches that nothing tells apart from one: their keys agree, and the earlier one still
  /// sent when the later one had begun (docs/launches.md: it moves along). What counts is the log:
  /// records of the earlier one may have come late.
  [[nodiscard]] bool are_one(const core::RunUid& run, std::size_t earlier, std::size_t later) const;
  /// Some launch of the run went on beside a later one, as one with it.
  [[nodiscard]] bool mingled(const core::RunUid& run) const;

 private:
  using Launch = std::pair<core::RunUid, std::size_t>;
  [[nodiscard]] const LaunchPlan* plan_of(const core::RunUid& run, std::size_t launch) const;
  [[nodiscard]] bool mixed(const core::RunUid& run, std::size_t launch) const;

  World& world_;
  std::map<std::pair<std::int32_t, std::int64_t>, std::size_t> sent_by_;
  /// Offsets of the first words of a launch's first and last process.
  std::map<Launch, std::pair<std::int64_t, std::int64_t>> opening_;
  std::map<Launch, std::int64_t> last_sent_;  // offset of its last word
  std::map<core::RunUid, std::int32_t> partition_of_;
};

}  // namespace tocsin::simulation
