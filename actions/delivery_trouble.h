// How people hear that messages do not reach them: the built-in issues `delivery_dead` and
// `delivery_config` of one integration (docs/actions/README.md). Told by default like any other,
// over whatever other route still works.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actions/own_issues.h"
#include "core/issue.h"
#include "core/notification.h"

namespace tocsin::actions {

/// Pure; one per integration. `delivery_dead` (error) begins when a message is given up and ends
/// when the next one arrives; `delivery_config` (error) begins when the far side or our own
/// settings refuse a message (credentials, address, secret file) and ends when one arrives. Both
/// are reported again at most once a minute while it lasts, and time out an hour after the last
/// report: the process that would end them may have gone. Nothing is made of messages that only
/// speak of such trouble: a broken mailbox would report itself for ever.
class DeliveryTrouble {
 public:
  DeliveryTrouble(std::string integration, std::string cluster)
      : integration_(std::move(integration)), cluster_(std::move(cluster)) {}

  /// The message has its final state, dead or expired.
  std::optional<core::Issue> given_up(const core::Notification& message,
                                      const core::Delivery& record, core::WallTime now);
  /// An attempt failed for a reason that no retry mends.
  std::optional<core::Issue> refused(const core::Notification& message,
                                     const core::Delivery& record, core::WallTime now);
  /// One has arrived: what stood is over.
  std::vector<core::Issue> arrived(core::WallTime now);

 private:
  struct Trouble {
    core::WallTime began{};
    core::WallTime told{};
    std::uint64_t messages = 0;
    std::string why;  // as last told
    bool stands = false;
  };
  std::optional<core::Issue> report(Trouble& trouble, ActionIssue rule, std::string what,
                                    const core::Delivery& record, core::WallTime now);
  [[nodiscard]] core::Issue issue(const Trouble& trouble, ActionIssue rule,
                                  core::IssueStatus status, core::WallTime now) const;

  std::string integration_;
  std::string cluster_;
  std::string receiver_;  // as the messages name them
  std::string type_;
  Trouble dead_;
  Trouble config_;
};

}  // namespace tocsin::actions
