// A notification in words: the one place where texts for people are made. Internal to actions.
#pragma once

#include <string>

#include "actions/event_json.h"
#include "core/notification.h"

namespace tocsin::actions {

/// One line: "[FIRING:1 error] exploding_tensor digits", "[RESOLVED] exploding_tensor digits".
std::string headline(const core::Notification& notification);
/// One sentence with the numbers: "non_finite is 17, limit >= 1, at step 412 (train) in
/// gradient/conv1.weight on worker_0".
std::string evidence_sentence(const core::Issue& issue);
/// Plain text, lines of any length, \n line ends.
std::string text_body(const core::Notification& notification, const Sender& sender);
/// One self-contained HTML document, everything from data escaped.
std::string html_body(const core::Notification& notification, const Sender& sender);

}  // namespace tocsin::actions
