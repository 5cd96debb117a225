// What a message says, before it is text: the view that templates are filled in from. Internal to
// actions.
#pragma once

#include <string_view>

#include "actions/message/event_json.h"
#include "core/notification.h"
#include "core/value.h"

namespace tocsin::actions {

/// The names that docs/actions/webhook.md lists: headline, outcome, status, lead, issues, followers,
/// runs, … Every text is visible on one line (core/visible_text.h). In the short form the first issue
/// alone, and no details.
core::Value message_view(const core::Notification& notification, const Sender& sender);
/// Is `name`, which may be a path, one that message_view() gives to some message?
bool in_message_view(std::string_view name);

}  // namespace tocsin::actions
