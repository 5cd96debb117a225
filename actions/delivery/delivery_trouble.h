// How people hear that messages do not reach them: the built-in issues `delivery_dead`,
// `delivery_config`, `delivery_parked`, `delivery_standing` and `delivery_recipient` of one
// integration (docs/actions/README.md). Told by default like any other, over whatever other route
// still works.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actions/contract/own_issues.h"
#include "core/issue.h"
#include "core/notification.h"

namespace tocsin::actions {

/// Nothing is made of messages that only speak of such trouble: a broken mailbox would report
/// itself for ever. An unpacked message.
bool speaks_of_trouble_only(const core::Notification& message);

/// Pure; one per integration. Each issue is reported again at most once a minute while it lasts,
/// and times out an hour after the last report: the process that would end it may have gone.
class DeliveryTrouble {
 public:
  DeliveryTrouble(std::string integration, std::string cluster)
      : integration_(std::move(integration)), cluster_(std::move(cluster)) {}

  /// `delivery_dead`: the message has its final state, dead or expired. Until one arrives.
  std::optional<core::Issue> given_up(const core::Notification& message,
                                      const core::Delivery& record, core::WallTime now);
  /// `delivery_config`: an attempt failed for a reason that no retry mends. Until one arrives.
  std::optional<core::Issue> refused(const core::Notification& message,
                                     const core::Delivery& record, core::WallTime now);
  /// One has arrived: what stood of both is over.
  std::vector<core::Issue> arrived(core::WallTime now);

  /// `delivery_parked`: the message fails while others arrive; `count` messages do.
  std::optional<core::Issue> parked(const core::Notification& message, const core::Delivery& record,
                                    std::size_t count, core::WallTime now);
  /// The last of them has its final state.
  std::optional<core::Issue> unparked(core::WallTime now);

  /// `delivery_standing`: nothing has arrived since, and `waiting` messages wait. `record`: of one
  /// of them, `detail` what the last attempt came to.
  std::optional<core::Issue> standing(const core::Delivery& record, core::WallTime since,
                                      std::size_t waiting, core::WallTime now);
  /// Whether standing() would say something; asked before a record is made for it.
  [[nodiscard]] bool may_say_standing(core::WallTime now) const;
  /// Messages arrive again, or none waits.
  std::optional<core::Issue> moves(core::WallTime now);

  /// `delivery_recipient`: one recipient does not get what the others get.
  std::optional<core::Issue> not_reached(const std::string& recipient, const std::string& code,
                                         const core::Delivery& record, core::WallTime now);
  /// A message has reached everybody but `missed`; `only`: it was for that one alone.
  std::vector<core::Issue> reached(const std::string& only, const std::set<std::string>& missed,
                                   core::WallTime now);

 private:
  struct Trouble {
    core::WallTime began{};
    core::WallTime told{};
    std::uint64_t messages = 0;
    bool stands = false;
    std::string recipient;
  };
  std::optional<core::Issue> report(Trouble& trouble, ActionIssue rule, const std::string& what,
                                    const core::Delivery& record, core::WallTime now);
  std::optional<core::Issue> over(Trouble& trouble, ActionIssue rule, const std::string& what,
                                  core::WallTime now) const;
  [[nodiscard]] core::Issue issue(const Trouble& trouble, ActionIssue rule,
                                  core::IssueStatus status, core::WallTime now) const;

  std::string integration_;
  std::string cluster_;
  std::string receiver_;  // as the messages name them
  std::string type_;
  Trouble dead_;
  Trouble config_;
  Trouble parked_;
  Trouble standing_;
  std::map<std::string, Trouble> recipients_;
};

}  // namespace tocsin::actions
