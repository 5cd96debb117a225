// A notification in words: the built-in texts for people. Internal to actions.
#pragma once

#include <string>

#include "actions/message_view.h"

namespace tocsin::actions {

/// Plain text, lines of any length, \n line ends.
std::string text_body(const core::Notification& notification, const Sender& sender);
/// One self-contained HTML document, everything from data escaped.
std::string html_body(const core::Notification& notification, const Sender& sender);

}  // namespace tocsin::actions
