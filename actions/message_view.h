// What a message says, before it is text: the view that templates are filled in from. Internal to
// actions.
#pragma once

#include <string>
#include <string_view>

#include "actions/event_json.h"
#include "core/notification.h"
#include "core/value.h"

namespace tocsin::actions {

/// One line: "[FIRING:1 error] exploding_tensor digits", "[RESOLVED] exploding_tensor digits".
std::string headline(const core::Notification& notification);
/// One sentence with the numbers: "non_finite is 17, limit >= 1, at step 412 (train) in
/// gradient/conv1.weight on worker_0".
std::string evidence_sentence(const core::Issue& issue);

/// The names that docs/actions/webhook.md lists: headline, status, firing, resolved, receiver,
/// reason, kind, notification_id, group_labels, hidden, details, home, footer, issues. Every text
/// is printable: no line break or control character of the data gets into a message. Only the first
/// issue, and no details, in the short form.
core::Value message_view(const core::Notification& notification, const Sender& sender);
/// Is `name`, which may be a path, one that message_view() gives to some message?
bool in_message_view(std::string_view name);

}  // namespace tocsin::actions
