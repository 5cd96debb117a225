// The notification log: what each integration was told about each group, which ends it has still to
// hear of, and which messages are on their way (docs/routing.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/function_ref.h"
#include "core/notification.h"
#include "core/result.h"
#include "core/time.h"
#include "routing/routing.h"
#include "routing/tables/state.h"
#include "routing/tables/told.h"

namespace tocsin::routing {

/// Has some integration been told of the issue, or is still owed its end?
bool told_in(const GroupLogs& logs, std::string_view issue_key);
/// Does some integration know of this episode of the issue, or has still to hear its end?
bool concerns(const GroupLogs& logs, std::string_view issue_key, std::uint64_t episode);

/// Records `log/<group hash>/<integration id>`.
class NotificationLog {
 public:
  /// What is known of a group's integrations; stays where it is until drop_group().
  const GroupLogs& of(const std::string& group) { return logs_[group]; }

  /// One integration's log, made for the call where there is none. `edit` returns whether it has
  /// changed: then it is kept and written.
  void change(const std::string& group, const std::string& integration,
              core::FunctionRef<bool(TellLog&)> edit);
  /// What became of a message. nullopt: not one of this group's.
  std::optional<Settled> settle(const std::string& group, const core::Delivery& delivery);
  /// Nothing is known of its integrations any more …
  void forget_group(const std::string& group);
  /// … and nobody holds what of() gave either.
  void drop_group(const std::string& group);

  /// Resolves that some integration has still to hear of.
  [[nodiscard]] std::uint64_t owed() const noexcept { return owed_; }
  void show(EachFigure each) const;
  /// Messages without a final state, and when the oldest was decided.
  [[nodiscard]] std::size_t undelivered() const noexcept { return undelivered_.size(); }
  [[nodiscard]] std::optional<core::WallTime> oldest_undelivered() const;

  /// `rest`: the record's key behind the kind. Any order, then restored().
  core::Status restore(std::string_view rest, std::string_view value);
  /// Takes back what belongs to no group.
  void restored(core::FunctionRef<bool(const std::string& group)> is_there);
  void take(std::vector<StateRecord>& out);
  void snapshot(std::vector<StateRecord>& out) const;

 private:
  void count(const std::string& integration, const TellLog& log);
  void discount(const std::string& integration, const TellLog& log);

  std::map<std::string, GroupLogs> logs_;                  // by group hash
  std::set<std::pair<std::string, std::string>> changed_;  // group hash, integration
  std::multiset<core::WallTime> undelivered_;              // when they were decided
  std::uint64_t owed_ = 0;
  CountBy owed_to_;  // by integration
};

}  // namespace tocsin::routing
