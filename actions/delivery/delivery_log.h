// What lanes have to say and nobody has taken yet. Internal to actions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "actions/delivery/delivery_lanes.h"

namespace tocsin::actions {

/// Where the outbox reader may commit: the lowest record that is not finished. A record is open as
/// often as deliveries are made of it.
class LowWater {
 public:
  void open(const core::Position& at) {
    open_.insert(at.next);
    next_ = std::max(next_, at.next + 1);
  }
  void close(std::int64_t offset) {
    if (const auto one = open_.find(offset); one != open_.end()) open_.erase(one);
  }
  void pass(const core::Position& at) { next_ = std::max(next_, at.next + 1); }
  /// The new position if it moved since the last call.
  std::optional<std::int64_t> moved() {
    const std::int64_t now = open_.empty() ? next_ : *open_.begin();
    if (now == told_) return std::nullopt;
    told_ = now;
    return now;
  }

 private:
  std::multiset<std::int64_t> open_;
  std::int64_t next_ = 0;
  std::int64_t told_ = 0;
};

/// Records of deliveries, issues that people must be told, and outbox positions, until take().
class DeliveryLog {
 public:
  void record(core::Delivery delivery) { deliveries_.push_back(std::move(delivery)); }
  void bury(std::shared_ptr<const core::Notification> notification, core::Delivery end) {
    dead_.push_back({std::move(notification), std::move(end)});
  }
  void tell(std::optional<core::Issue> issue) {
    if (issue) issues_.push_back(std::move(*issue));
  }
  void tell(std::vector<core::Issue> issues) {
    std::move(issues.begin(), issues.end(), std::back_inserter(issues_));
  }
  void publish(std::vector<core::OutRecord> records) {
    std::move(records.begin(), records.end(), std::back_inserter(records_));
  }
  /// A delivery of this outbox record began, or ended; or it needs none. nullopt: not from the outbox.
  void open(const std::optional<core::Position>& from) {
    if (from) positions_[from->where].open(*from);
  }
  void close(const std::optional<core::Position>& from) {
    if (from) positions_[from->where].close(from->next);
  }
  void pass(const std::optional<core::Position>& from) {
    if (from) positions_[from->where].pass(*from);
  }
  DeliveryLanes::Batch take() {
    DeliveryLanes::Batch out;
    out.deliveries = std::exchange(deliveries_, {});
    out.issues = std::exchange(issues_, {});
    out.records = std::exchange(records_, {});
    out.dead = std::exchange(dead_, {});
    for (auto& [where, low_water] : positions_) {
      if (const auto next = low_water.moved()) out.positions.push_back({where, *next});
    }
    return out;
  }

 private:
  std::vector<core::Delivery> deliveries_;
  std::vector<core::Issue> issues_;
  std::vector<core::OutRecord> records_;
  std::vector<DeliveryLanes::DeadLetter> dead_;
  std::map<core::StreamPartition, LowWater> positions_;
};

}  // namespace tocsin::actions
