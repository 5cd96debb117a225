// The buttons of a message as Slack's Block Kit has them. Internal to actions.
#pragma once

#include <vector>

#include "actions/message/answer_buttons.h"
#include "core/value.h"

namespace tocsin::actions {

/// A block `actions` with kSlackButtons as its block_id; each action_id is "tocsin_" and the first word of
/// the value (docs/acknowledge.md, contract/answer_target.h).
core::Value slack_buttons(const std::vector<AnswerButton>& buttons);

}  // namespace tocsin::actions
