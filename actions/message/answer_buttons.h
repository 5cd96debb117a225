// The buttons of a message: what one who reads it may do there, in words. Internal to actions.
#pragma once

#include <string>
#include <vector>

#include "actions/message/event_json.h"
#include "core/notification.h"

namespace tocsin::actions {

/// Every text is plain, on one line.
struct AnswerButton {
  std::string text;      // at most 30 characters
  std::string value;     // AnswerTarget::text()
  bool first = false;    // what to press if in doubt
  bool severe = false;   // it cannot be taken back
  std::string question;  // asked before it is done, at most 300 bytes; empty: nothing is asked
  std::string yes;       // the answer that does it, at most 30 characters
  std::string no;
};

/// The router's own issues are in no topic, so that nobody could acknowledge them.
bool is_of_the_router(const core::Issue& issue, const Sender& sender);

/// Acknowledge, silence, and a word on the stop that waits, as far as they make sense for this message.
/// Empty: `sender.buttons` says that clicks reach nobody.
std::vector<AnswerButton> answer_buttons(const core::Notification& notification,
                                         const Sender& sender);

}  // namespace tocsin::actions
