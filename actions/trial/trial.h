// Delivering a test message by one integration, as a router would, with what was asked and answered.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "actions/contract/descriptor.h"
#include "actions/contract/receivers.h"
#include "actions/trial/exchange.h"
#include "core/action.h"
#include "core/notification.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::actions {

struct TrialOptions {
  bool drill = false;    // close what was opened
  bool dry_run = false;  // show the requests and send none
  core::Severity severity = core::Severity::warning;
  std::string person;  // named in the message
  /// Waits until an attempt that the action holds back may follow (a result that is asked for later).
  /// Empty: nobody waits, and such a message counts as not arrived.
  std::function<void(core::Duration)> pause = {};
  /// What is delivered in place of the test message. Empty: the test message.
  std::function<core::Notification(const ConfiguredIntegration&, core::WallTime now)> message = {};
};

/// One message of a trial.
struct TrialStep {
  core::NotificationKind kind = core::NotificationKind::open;
  core::AttemptOutcome outcome;  // of a dry run: means nothing
  core::Duration took{};
  std::vector<Exchange> exchanges;
};

struct Trial {
  std::string integration;
  std::string receiver;
  std::string type;
  bool dry_run = false;
  std::string skipped;             // why nothing was tried; empty: `steps` holds what was
  std::vector<std::string> notes;  // what the router would do otherwise, what stays open
  std::vector<TrialStep> steps;

  /// Every message arrived; also of a dry run that built its requests.
  [[nodiscard]] bool passed() const;
  /// It failed, and the same request may pass later: no answer, a limit of the far side.
  [[nodiscard]] bool worth_repeating() const;
};

/// One attempt per message, within the `timeout` of the integration, and those that the action asks for
/// itself; blocks so long. Actions on runs
/// and on issues (stop_training, profile_training, publish_metric) are skipped. `environment` may lack
/// what writes to topics.
Trial try_integration(const ConfiguredIntegration& integration, Environment environment,
                      const TrialOptions& options);

core::Value to_value(const Trial& trial);

}  // namespace tocsin::actions
