#include "app/stages/stops_here.h"

#include <algorithm>

namespace tocsin::app {
namespace {

constexpr std::size_t kMaxStops = 4096;

using State = actions::StopState;

bool under_way(State state) {
  // Asked for is not yet under way: a process may still come to an end of its own.
  return state == State::checkpointing || state == State::platform_graceful ||
         state == State::platform_force;
}

}  // namespace

void StopsHere::note(const actions::StopTransition& transition) {
  const core::MutexLock lock(mutex_);
  if (under_way(transition.to)) {
    if (stops_.size() >= kMaxStops && !stops_.contains(transition.run)) {
      const auto older = [](const auto& a, const auto& b) { return a.second.at < b.second.at; };
      stops_.erase(std::min_element(stops_.begin(), stops_.end(), older));
    }
    stops_[transition.run] = {transition.command_id, transition.rule.empty(), transition.at};
  } else if (actions::is_final(transition.to) && transition.to != State::stopped &&
             transition.to != State::already_ended) {
    // It came to nothing: what ends from now on ends by itself.
    const auto known = stops_.find(transition.run);
    if (known != stops_.end() && known->second.command_id == transition.command_id) {
      stops_.erase(known);
    }
  }
}

bool StopsHere::stops(const core::RunUid& run) const {
  const core::MutexLock lock(mutex_);
  return stops_.contains(run);
}

StopsHere::Found StopsHere::stop_of(const core::RunUid& run, std::uint64_t incarnation) const {
  const core::MutexLock lock(mutex_);
  const auto known = stops_.find(run);
  if (known == stops_.end()) return {};
  const auto at = static_cast<std::uint64_t>(core::nanoseconds(known->second.at));
  if (incarnation > at) return {};
  return {known->second.command_id, known->second.by_person};
}

}  // namespace tocsin::app
