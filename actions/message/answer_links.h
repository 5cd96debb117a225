// Links by which one acts from a mail without signing in. What is stored of a message has them unsigned:
// a signature lets anybody act, and is put in when the message is sent. Internal to actions.
#pragma once

#include <string>
#include <vector>

#include "actions/message/event_json.h"
#include "actions/message/run_words.h"
#include "core/notification.h"

namespace tocsin::actions {

/// "Acknowledge" and "Silence 1 h", each with its unsigned URL. Empty: this server makes no links, or
/// nothing fires that one could answer.
Rows answer_links(const core::Notification& notification, const Sender& sender);
/// `text` with the links of this message signed, and no other: text of others that looks like one stays
/// as it is. Where the secret cannot be read they stay unsigned, and their page says so. `signatures` is
/// given those that were put in: no log may have them.
std::string signed_links(std::string text, const core::Notification& notification,
                         const Sender& sender, std::vector<std::string>& signatures);
/// The same for text in quoted-printable lines.
std::string signed_links_in_lines(std::string text, const core::Notification& notification,
                                  const Sender& sender, std::vector<std::string>& signatures);

}  // namespace tocsin::actions
