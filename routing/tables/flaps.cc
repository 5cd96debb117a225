#include "routing/tables/flaps.h"

#include <algorithm>
#include <chrono>

#include "core/fields/json_in.h"
#include "core/fields/out.h"

namespace tocsin::routing {

using core::How;
using core::Of;
using core::WallTime;

namespace {

constexpr std::size_t kMaxFlapState = std::size_t{256} << 10;
/// Begins older than this count on no route.
constexpr core::Duration kFlapMemory = std::chrono::hours(24 * 7);

}  // namespace

template <typename A>
void fields(A& io, Of<A, FlapState>& state) {
  std::vector<std::int64_t> begins;
  std::map<std::string, std::int64_t> flapping;
  std::vector<std::string> untold;
  if constexpr (!A::kReading) {
    for (const WallTime at : state.begins) begins.push_back(core::nanoseconds(at));
    for (const auto& [route, since] : state.flapping) flapping[route] = core::nanoseconds(since);
    untold.assign(state.untold.begin(), state.untold.end());
  }
  io.field("begins", begins);
  io.rows("flapping", flapping);
  io.field("untold", untold, "", How::omit_if_empty);
  if constexpr (A::kReading) {
    for (const std::int64_t at : begins) state.begins.push_back(core::wall_time(at));
    for (const auto& [route, since] : flapping) state.flapping[route] = core::wall_time(since);
    state.untold = {untold.begin(), untold.end()};
  }
}

std::string encode(const FlapState& state) { return core::write_json(state); }

core::Status decode(std::string_view value, FlapState& state) {
  if (const core::Status read = core::read_json(value, kMaxFlapState, state); !read) {
    return core::Error{core::Code::data_loss, read.error().message};
  }
  return core::ok();
}

void Flaps::began(const IssueState& issue, WallTime now) {
  const auto damps = [](const Group* group) {
    return group->route != nullptr && group->route->flap.has_value();
  };
  if (std::none_of(issue.groups.begin(), issue.groups.end(), damps)) return;
  FlapState& state = table_.make(issue.key);
  state.begins.push_back(now);
  if (state.begins.size() > kMaxFlapEpisodes) state.begins.erase(state.begins.begin());
  for (const Group* group : issue.groups) {
    if (!damps(group) || state.flapping.contains(group->route->id)) continue;
    const FlapConfig& flap = *group->route->flap;
    if (state.begins.size() < flap.episodes) continue;
    if (now - *(state.begins.end() - flap.episodes) > flap.within) continue;
    state.flapping[group->route->id] = now;
    state.untold.insert(group->hash);
  }
  table_.touch(issue.key);
}

bool Flaps::damped(const IssueState& issue, const Route& route, WallTime at) const {
  if (!route.flap) return false;
  const FlapState* state = table_.find(issue.key);
  return state != nullptr && state->flapping.contains(route.id) &&
         at - issue.last_transition < route.flap->hold;
}

bool Flaps::calmed(const IssueState& issue, const Route& route, WallTime at) const {
  const FlapState* state = table_.find(issue.key);
  return state != nullptr && state->flapping.contains(route.id) && !damped(issue, route, at);
}

bool Flaps::any(const Group& group) const {
  if (table_.size() == 0) return false;
  return std::any_of(group.members.begin(), group.members.end(), [&](const auto& member) {
    const FlapState* state = table_.find(member.first);
    return state != nullptr && state->flapping.contains(group.route_id);
  });
}

bool Flaps::untold(std::string_view issue_key, const std::string& group) const {
  const FlapState* state = table_.find(issue_key);
  return state != nullptr && state->untold.contains(group);
}

void Flaps::told(std::string_view issue_key, const std::string& group) {
  FlapState* state = table_.find(issue_key);
  if (state != nullptr && state->untold.erase(group) > 0) table_.touch(issue_key);
}

void Flaps::calm(std::string_view issue_key, const std::string& route_id) {
  FlapState* state = table_.find(issue_key);
  if (state == nullptr || state->flapping.erase(route_id) == 0) return;
  state->begins.clear();  // it flaps anew when it begins as often again
  table_.touch(issue_key);
}

void Flaps::forget(WallTime now) {
  if (table_.size() == 0) return;
  for (const auto& [key, state] : table_.in_order()) {
    const bool old = state->begins.empty() || now - state->begins.back() > kFlapMemory;
    if (old && state->flapping.empty()) table_.erase(std::string(key));
  }
}

std::size_t Flaps::flapping() const {
  if (table_.size() == 0) return 0;
  const auto all = table_.in_order();
  return static_cast<std::size_t>(std::count_if(
      all.begin(), all.end(), [](const auto& one) { return !one.second->flapping.empty(); }));
}

}  // namespace tocsin::routing
