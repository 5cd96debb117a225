#include "actions/stop/ack_target.h"

#include <chrono>
#include <cstdint>

#include "core/time.h"

namespace tocsin::actions {
namespace {

/// Attempts above it are seconds since 1970, the start of a launch.
constexpr std::uint32_t kFirstStartTime = 1'000'000'000;
/// Ranks of one launch start within this time.
constexpr std::uint32_t kStartsWithin = 600;
/// Between clocks of two machines; what opens later was not meant (StopLedger::resend).
constexpr core::Duration kOpensLater = std::chrono::seconds(10);

bool same_attempt(std::uint32_t stated, std::uint32_t wanted) {
  if (wanted < kFirstStartTime) return stated <= wanted;
  if (stated < kFirstStartTime) return true;  // a number that the engine has counted on from
  return (stated > wanted ? stated - wanted : wanted - stated) <= kStartsWithin;
}

bool opened_before(std::uint64_t incarnation, core::WallTime issued) {
  if (incarnation == 0 || issued == core::WallTime{}) return true;  // not told
  const auto latest = core::nanoseconds(issued + kOpensLater);
  return latest < 0 || incarnation <= static_cast<std::uint64_t>(latest);
}

}  // namespace

bool answers(const core::Ack& ack, const core::Command& command) {
  if (ack.run != command.run || ack.command_id != command.command_id) return false;
  if (!same_attempt(ack.attempt, command.attempt)) return false;
  const bool node_told = !ack.node.empty() && !command.launch.empty();
  if (node_told && !command.launch.contains(ack.node)) return false;
  return opened_before(ack.incarnation, command.issued_at);
}

}  // namespace tocsin::actions
