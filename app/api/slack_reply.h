// What is posted to a click's response_url: pure.
#pragma once

#include <string>

#include "app/api/slack_click.h"

namespace tocsin::app {

/// Only the one who has pressed sees it.
std::string slack_whisper(const std::string& text);
/// The message in which the button was pressed, with `text` at its end, and without the buttons of that
/// kind ("ack"; a decided stop has neither of its two). Empty: the message cannot be built from the click.
std::string slack_changed_message(const SlackClick& click, const std::string& text);

}  // namespace tocsin::app
