// What the tools that keep incidents are told, in plain text. Internal to actions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "actions/message/chat_message.h"
#include "actions/message/event_json.h"
#include "core/notification.h"
#include "core/value.h"

namespace tocsin::actions {

/// Text as it is; a link is "Runbook: https://…".
const ChatMarkup& plain_text();

/// Finding, numbers, advice, what followed, a command, links and footer, a paragraph each, in `markup`. At
/// most `limit` bytes: what is needed least is left out first. The short form has finding, command and
/// footer.
std::string incident_text(const core::Notification& notification, const Sender& sender,
                          const ChatMarkup& markup, std::size_t limit);
/// The headline and, below it, the same.
std::string incident_news(const core::Notification& notification, const Sender& sender,
                          const ChatMarkup& markup, std::size_t limit);

/// The job and, where it is not known, the cluster.
std::string job_or_cluster(const core::Notification& notification, const Sender& sender);
/// The page that says most of the incident; empty: there is none.
std::string incident_page(const core::Notification& notification, const Sender& sender);
/// The first host of the run that the message is named for; empty: not known.
std::string first_host(const core::Notification& notification);

/// Cluster, rule, and the labels of the issue that the message is named for, at most `limit` bytes of names
/// and values.
core::ValueMap incident_details(const core::Notification& notification, const Sender& sender,
                                std::size_t limit);

}  // namespace tocsin::actions
