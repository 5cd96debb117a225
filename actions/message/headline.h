// The one line that a person reads first. Internal to actions.
#pragma once

#include <string>

#include "core/notification.h"

namespace tocsin::actions {

/// The issue that a message is named for: the most severe that is not told as over, where any is, else
/// of all; of several the first.
/// null: the message names none.
const core::NotifiedIssue* lead_of(const core::Notification& notification);

/// Whether a message says of an issue that it is over: not of one whose job ended before anybody was
/// told, for that is news still.
bool told_as_over(const core::Notification& notification, const core::Issue& issue);

/// "recovered", "stopped, checkpoint saved", "job failed, exit code 1": what became of an issue and its
/// run. Empty: nothing to tell.
std::string outcome_words(const core::Notification& notification, const core::Issue& issue);

/// "[error] llm-7b: loss is NaN since step 302 – stopped, checkpoint saved",
/// "[resolved] llm-7b: loss was NaN from step 302 to 310 – recovered". One line, everything in it
/// visible, at most 240 bytes; a part that does not fit is cut, with a mark.
std::string headline(const core::Notification& notification);

}  // namespace tocsin::actions
