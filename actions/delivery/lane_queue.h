// What waits in one lane: a FIFO per group. Internal to actions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actions/delivery/head_index.h"
#include "actions/delivery/item.h"
#include "core/time.h"

namespace tocsin::actions {

/// Only the first message of a group may be under way. Whoever changes a group calls index() before
/// anything is asked of it.
class LaneQueue {
 public:
  using Group = std::deque<Item>;

  // ---- messages without a final state, whether a group has them already or not

  void entered(const Item& item) {
    ++waiting_;
    ages_.emplace(item.notification->decided_at, item.ticket);
  }
  void left(const Item& item) {
    --waiting_;
    ages_.erase({item.notification->decided_at, item.ticket});
  }
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }
  /// When the oldest was decided; nullopt: none waits.
  [[nodiscard]] std::optional<core::WallTime> oldest() const;

  // ---- groups

  /// Behind what waits in its group.
  void push(Item item);
  [[nodiscard]] Group* find(const std::string& group);
  [[nodiscard]] Item& head(const std::string& group) { return groups_.at(group).front(); }
  /// The group's message that is under way; null: none is.
  [[nodiscard]] Item* under_way(const std::string& group);
  /// Takes the first message of the group, which has one.
  Item take_first(const std::string& group);
  /// Takes those of the group that are too old and not under way, oldest first.
  std::vector<Item> take_expired(const std::string& group, core::WallTime now);
  /// Takes all that are not under way, by group; `touched`: every group.
  std::vector<Item> take_all(std::vector<std::string>& touched);
  /// By group key; the groups that wait, none of them empty once index() was called.
  [[nodiscard]] const std::map<std::string, Group>& groups() const noexcept { return groups_; }

  // ---- which is next

  /// The group has changed. An empty one goes.
  void index(const std::string& group);
  /// Groups whose first message was never tried.
  [[nodiscard]] HeadIndex& fresh() noexcept { return fresh_; }
  /// The others: they never keep the fresh ones waiting.
  [[nodiscard]] HeadIndex& failed() noexcept { return failed_; }
  /// A group in which something is too old by now; null: none.
  [[nodiscard]] const std::string* expired(core::WallTime now) const;

 private:
  std::map<std::string, Group> groups_;
  HeadIndex fresh_;
  HeadIndex failed_;
  std::set<std::pair<core::WallTime, std::uint64_t>> ages_;  // decided at, ticket
  std::size_t waiting_ = 0;
};

}  // namespace tocsin::actions
