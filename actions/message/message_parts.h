// The parts of a message for people, in the order in which they are read. Internal to actions.
#pragma once

#include <string>
#include <vector>

#include "actions/message/event_json.h"
#include "actions/message/next_commands.h"
#include "actions/message/run_words.h"
#include "core/notification.h"

namespace tocsin::actions {

/// One line of the list of what else there is.
struct Follower {
  std::string tag;    // ERROR, RESOLVED
  std::string title;  // "gradient/conv1.weight has NaN"
  std::string rest;   // "step 303, exploding_tensor"
};

/// Rows under a heading.
struct Part {
  std::string heading;
  Rows rows;
};

/// Every text is one line, visible, and bounded, so that the whole is: under 32 KiB as text.
struct MessageParts {
  std::string headline;
  std::string outcome;               // what became of it, as the headline ends
  std::string tag;                   // ERROR, RESOLVED
  std::string tone;                  // info, warning, error, critical, resolved
  std::string summary;               // what was found: one sentence
  std::string description;           // more of it
  std::vector<std::string> console;  // what a failed process said last, a line each
  Rows found;                        // numbers, place, step, time, rule
  Part ended;                        // how it ended; no rows while it fires
  Part did;                          // what Tocsin did, and what the run answered
  std::string followed;              // "9 issues followed"; empty: nothing did
  std::vector<Follower> followers;
  std::string hidden;               // how many more there are; empty: none
  std::vector<std::string> advice;  // each once, that of the first sign first
  std::vector<Part> runs;           // where it happens
  Rows links;                       // ids and pages
  std::vector<NextCommand> commands;
  std::string footer;
};

/// In the short form (`minimal`): headline, what was found, how it ended, ids and commands.
MessageParts message_parts(const core::Notification& notification, const Sender& sender);

/// RESOLVED, or the severity in capitals.
std::string tag(const core::Issue& issue);
/// "7 more are not shown here."; empty when all are.
std::string not_shown(const core::Notification& notification, std::size_t shown);
std::string footer(const core::Notification& notification);

}  // namespace tocsin::actions
