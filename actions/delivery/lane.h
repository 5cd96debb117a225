// What waits in one lane: a FIFO per group, and what is merged while it waits. Internal to actions.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "actions/contract/message_fault.h"
#include "actions/delivery/delivery_lanes.h"
#include "actions/delivery/delivery_stand.h"
#include "actions/delivery/delivery_trouble.h"
#include "actions/delivery/head_index.h"
#include "actions/delivery/pacing.h"
#include "core/notification.h"
#include "core/telemetry.h"

namespace tocsin::actions {

using Handles = HandleList;

/// One undelivered notification.
struct Item {
  std::shared_ptr<core::Notification> notification;
  std::uint64_t ticket = 0;
  std::optional<core::Position> from;
  core::WallTime enqueued{};
  core::WallTime expires{};
  core::WallTime not_before{};
  int rank = 0;                // rank_of() the notification
  std::uint32_t attempts = 0;  // of this notification id
  std::uint32_t failures = 0;  // in a row, also of what this one superseded: back-off
  MessageFault fault;          // whether it fails while others arrive
  std::uint32_t together = 0;  // at most so many in one digest; 0: any number, 1: none
  std::string only_to;         // the recipient that this delivery is for; empty: all
  bool in_flight = false;
  bool maybe_announced = false;  // an attempt ended unknown: the far side may have it
  std::optional<core::WallTime> misconfigured_since;
};

/// Waiting order: close > critical > error > warning > info.
int rank_of(const core::Notification& notification);
/// When the notification is too old to be sent.
core::WallTime expiry_of(const core::Notification& notification, const CommonConfig& cfg);

/// What the merging of waiting messages settled: `item` has the final state superseded.
struct Superseded {
  Item item;
  std::string successor;  // notification id; empty: never announced
};
/// Merges the messages of one group that wait, oldest first.
std::vector<Superseded> coalesce(std::deque<Item>& queue);
/// The same for Traits::every_issue: a message goes where those behind it tell of all its issues.
std::vector<Superseded> coalesce_by_issue(std::deque<Item>& queue);

/// Instruments of a lane; every label value exists from the start.
class LaneProbe {
 public:
  LaneProbe(core::Telemetry& telemetry, const LaneOptions& options);
  void finished(core::DeliveryState state);
  void attempted(core::OutcomeClass outcome, core::Duration latency);
  void delivered(const core::Notification& notification, core::WallTime now);
  void pending(std::size_t count) { pending_->set(static_cast<double>(count)); }
  void oldest(core::Duration age) { oldest_->set(std::chrono::duration<double>(age).count()); }
  void breaker(Breaker::State state);
  void throttled(core::Duration wait);
  void dead(core::OutcomeClass reason) { dead_[static_cast<std::size_t>(reason)]->add(); }
  /// An outcome that nobody knows is tried again: the far side may act twice.
  void repeated() { repeated_->add(); }

 private:
  std::vector<core::Counter*> states_;
  std::vector<core::Counter*> outcomes_;
  std::vector<core::Counter*> dead_;
  core::Histogram* latency_;
  core::Histogram* since_decision_;
  core::Histogram* since_event_;
  core::Histogram* retry_after_;
  core::Gauge* pending_;
  core::Gauge* oldest_;
  core::Gauge* breaker_;
  core::Counter* breaker_moves_;
  core::Counter* limited_;
  core::Counter* repeated_;
  Breaker::State breaker_was_ = Breaker::State::closed;
};

/// Names, the oldest of which are forgotten beyond a limit.
class Remembered {
  static constexpr std::size_t kLimit = 100'000;

 public:
  void add(const std::string& name) {
    if (!names_.insert(name).second) return;
    order_.push_back(name);
    if (order_.size() > kLimit) {
      names_.erase(order_.front());
      order_.pop_front();
    }
  }
  bool erase(const std::string& name) { return names_.erase(name) > 0; }
  [[nodiscard]] bool has(const std::string& name) const { return names_.contains(name); }

 private:
  std::unordered_set<std::string> names_;
  std::deque<std::string> order_;
};

/// It failed before, or is for a recipient that others do not wait for.
inline bool tried(const Item& item) { return item.failures > 0 || !item.only_to.empty(); }

struct Lane {
  Lane(LaneOptions lane_options, core::Telemetry& telemetry, std::size_t lane_number)
      : options(std::move(lane_options)),
        number(lane_number),
        bucket(options.common.rate_limit),
        breaker(options.common.breaker),
        width(options.common.concurrency),
        probe(telemetry, options),
        stand(options.common.standing_after),
        trouble(options.integration, options.cluster) {}

  LaneOptions options;
  std::size_t number;  // place among the lanes
  TokenBucket bucket;
  Breaker breaker;
  LaneWidth width;
  LaneProbe probe;
  DeliveryStand stand;
  DeliveryTrouble trouble;
  std::map<std::string, std::deque<Item>> groups;  // by group key; none is empty
  std::map<std::string, Handles> incidents;        // far-side ids of open incidents, by group key
  HeadIndex index;   // of groups whose first message was not tried yet
  HeadIndex failed;  // of the others: they never keep the first ones waiting
  std::set<std::uint64_t> failed_under_way;      // tickets
  bool splitting = false;                        // a digest was not taken: its halves are tried
  std::uint32_t turn = 0;                        // of both kinds, when both are due
  std::uint64_t arrived = 0;                     // messages delivered
  std::uint32_t throttled = 0;                   // times in a row
  std::string said_gone;                         // who was told last that the far side is gone
  std::set<std::string> parked;                  // notification ids
  std::map<std::string, std::uint32_t> put_off;  // recipients, deliveries of their own
  std::optional<core::WallTime> armed;           // when the lane is looked at again by itself
  Remembered unopened;                           // groups whose open was never delivered
  std::set<std::pair<core::WallTime, std::uint64_t>> ages;  // decided at, ticket: of what waits
  core::WallTime paused_until{};                            // the far side asked for it
  core::Duration restored_pause{};                          // length of a pause read back
  std::string disabled;  // why nothing is sent any more (410 gone)
  std::uint32_t in_flight = 0;
  std::size_t waiting = 0;  // notifications without a final state

  /// What may start now: the groups whose first messages make one attempt; none: nothing may.
  [[nodiscard]] std::vector<std::string> choose(core::WallTime now);
  /// Attempts that may be under way of messages that failed before.
  [[nodiscard]] std::size_t failed_width() const {
    return std::max<std::size_t>(1, width.now() / 2);
  }
  /// When something may happen that no finished attempt announces; nullopt: never by itself.
  [[nodiscard]] std::optional<core::WallTime> wake(core::WallTime now);

 private:
  [[nodiscard]] std::string one(core::WallTime now);
  [[nodiscard]] std::string probe_of(core::WallTime now);
  [[nodiscard]] std::vector<std::string> digest(core::WallTime now);
};

}  // namespace tocsin::actions
