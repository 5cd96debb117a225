#include "actions/delivery/lane_orders.h"

#include <string>
#include <vector>

#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

constexpr std::size_t kMostOfAComment = 500;

std::string held_words(const EndpointOrder& order) {
  std::string out =
      "switched off by " + (order.by.empty() ? "a person" : core::visible(order.by, 100));
  if (!order.comment.empty()) out += ": " + core::visible(order.comment, kMostOfAComment);
  return out;
}

// What waits for its next attempt is due; only its own limits hold it back.
void try_now(Lane& lane, core::WallTime now) {
  std::vector<std::string> groups;
  for (const auto& [group, waiting] : lane.queue.groups()) groups.push_back(group);
  for (const std::string& group : groups) {
    for (Item& item : *lane.queue.find(group)) {
      if (!item.in_flight && item.not_before > now) item.not_before = now;
    }
    lane.queue.index(group);
  }
}

}  // namespace

void obey(Lane& lane, const EndpointOrder& order, core::WallTime now) {
  switch (order.deed) {
    case EndpointDeed::disable:
      lane.pace.hold(held_words(order));
      break;
    case EndpointDeed::enable:
      lane.pace.release();
      lane.pace.switch_on();
      lane.far_side.not_gone();
      break;
    case EndpointDeed::reset:
      lane.pace.resume();
      break;
    case EndpointDeed::probe:
      lane.pace.resume();
      try_now(lane, now);
      break;
  }
  lane.probe.breaker(lane.pace.breaker());
}

EndpointStand stand_of(const Lane& lane) {
  EndpointStand out;
  out.integration = lane.options.integration;
  switch (lane.pace.breaker()) {
    case Breaker::State::closed:
      out.breaker = "closed";
      break;
    case Breaker::State::half_open:
      out.breaker = "half_open";
      break;
    case Breaker::State::open:
      out.breaker = "open";
      out.until = lane.pace.breaker_until();
      break;
  }
  out.paused = lane.pace.paused_until();
  out.held = lane.pace.held();
  out.switched_off = lane.pace.switched_off();
  out.waiting = lane.queue.waiting();
  out.oldest = lane.queue.oldest();
  return out;
}

}  // namespace tocsin::actions
