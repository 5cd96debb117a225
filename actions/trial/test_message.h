// The notification that `tocsin send-test` delivers: marked as a test wherever a person reads it.
#pragma once

#include <string>

#include "actions/contract/receivers.h"
#include "core/notification.h"
#include "core/time.h"

namespace tocsin::actions {

struct TestMessage {
  core::Severity severity = core::Severity::warning;
  std::string person;  // who sends it: "ada@node-7"
  std::string cluster = "default";
};

/// Opens an incident that no other test or group has. It names no run, and its issue is in no topic.
core::Notification test_open(const ConfiguredIntegration& integration, const TestMessage& message,
                             core::WallTime now);
/// Closes what test_open() opened.
core::Notification test_close(const core::Notification& open, core::WallTime now);

}  // namespace tocsin::actions
