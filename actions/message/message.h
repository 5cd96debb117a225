// A notification in words: the built-in texts for people. Internal to actions.
#pragma once

#include <string>

#include "actions/message/event_json.h"
#include "core/notification.h"

namespace tocsin::actions {

/// Plain text, \n line ends: headline, first sign, what became of it, what Tocsin did, advice, what
/// followed, run, links, commands.
std::string text_body(const core::Notification& notification, const Sender& sender);
/// One self-contained HTML document, everything from data escaped.
std::string html_body(const core::Notification& notification, const Sender& sender);

}  // namespace tocsin::actions
