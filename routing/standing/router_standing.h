// How the router stands, read from its changelog by somebody who only looks: groups, who was told of
// what, what is owed, which issues flap.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/issue.h"
#include "core/labels.h"
#include "core/notification.h"
#include "core/time.h"

namespace tocsin::routing {

/// An episode that an integration knows of as firing.
struct ToldStanding {
  std::string issue_key;
  std::uint64_t episode = 1;
  core::Severity severity = core::Severity::info;  // as it was told
  bool arrived = true;                             // the message that told of it was delivered
};

/// An end that an integration has still to hear of.
struct OwedStanding {
  std::string issue_key;
  std::uint64_t episode = 1;
  core::WallTime since{};
};

/// A message whose delivery has no final state yet.
struct WaitingMessage {
  std::string notification_id;
  core::NotificationKind kind = core::NotificationKind::open;
  core::WallTime decided_at{};
};

struct IntegrationStanding {
  std::string integration;
  bool incident_open = false;  // counting what is on its way
  std::uint64_t messages = 0;  // in this generation of the group
  std::optional<core::WallTime> last_message_at;
  std::vector<ToldStanding> told;  // these two by issue key
  std::vector<OwedStanding> owed;
  std::vector<WaitingMessage> waiting;  // oldest first
};

struct GroupStanding {
  std::string hash;
  std::string key;  // "<matcher path>:{k=\"v\"}"
  std::string route_id;
  core::Labels labels;
  bool overflow = false;
  std::uint64_t generation = 0;
  core::WallTime created_at{};
  std::optional<core::WallTime> next_flush;  // nullopt: without members
  std::optional<core::WallTime> last_flush;
  bool held = false;                              // waits for the end of a catch-up
  std::vector<std::string> members;               // issue keys, ascending
  std::vector<IntegrationStanding> integrations;  // by id
};

/// Takes records of `router-state`. A timer that has moved without anything else is written with the
/// next change: `next_flush` may lie in the past, and then follows from the group's interval. Not
/// thread-safe.
class RouterStanding {
 public:
  RouterStanding();
  ~RouterStanding();
  RouterStanding(RouterStanding&&) noexcept;
  RouterStanding& operator=(RouterStanding&&) noexcept;

  /// In their order; nullopt: a tombstone. Kinds that are not shown are passed over.
  void apply(std::string_view key, std::optional<std::string_view> value);

  /// Groups with members, or of which an integration has still to hear; by key, then by hash.
  [[nodiscard]] std::vector<GroupStanding> groups() const;
  /// The group of this hash, or of a beginning of it that is the only one.
  [[nodiscard]] std::optional<GroupStanding> find(std::string_view hash) const;
  /// Those that the issue is a member of, or that have still to tell its end.
  [[nodiscard]] std::vector<GroupStanding> groups_of(std::string_view issue_key) const;
  /// Since when the issue flaps on some route; nullopt: on none.
  [[nodiscard]] std::optional<core::WallTime> flapping_since(std::string_view issue_key) const;
  /// Records that could not be read.
  [[nodiscard]] std::uint64_t unreadable() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tocsin::routing
