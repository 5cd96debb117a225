// A notification as data for machines: native, Alertmanager v4 and CloudEvents bodies, without
// credentials. Internal to actions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actions/contract/answer_target.h"
#include "core/notification.h"
#include "core/value.h"

namespace tocsin::actions {

/// Where a message comes from and points to.
struct Sender {
  std::string cluster = "default";
  std::string external_url;                         // no trailing slash; empty = no links
  std::vector<std::string> place = {};              // Environment::place
  std::optional<AnswerWays::Buttons> buttons = {};  // nullopt: messages carry none
  std::optional<AnswerLinks> links = {};            // the same
};

/// W3C trace context, passed on to the far side.
struct TraceContext {
  std::string parent;  // both empty: there is none
  std::string state;
};
/// Of the first issue that has one.
TraceContext trace_of(const core::Notification& notification);

/// When an issue began; where nobody has said it, when it was seen or told.
core::WallTime begin_of(const core::Issue& issue, const core::Notification& notification);

/// Annotations beside those of the finding: `ending` (how it ended), `outcome` of its run, `stop` (id)
/// and `checkpoint`, as far as there are such.
std::vector<std::pair<std::string, std::string>> ending_annotations(
    const core::Notification& notification, const core::Issue& issue);

/// Our own form: headline, status, kind, reason, labels, counts, every issue with its evidence and its
/// ending, and the runs; the minimal form of a message whose full one was refused has of the issue that
/// it is named for the finding and the outcome.
std::string native(const core::Notification& notification, const Sender& sender);
/// The webhook of Prometheus Alertmanager, version "4".
core::Value alertmanager_v4(const core::Notification& notification, const Sender& sender);
/// CloudEvents 1.0 structured mode: type dev.tocsin.notification.v1, data = native().
std::string cloud_event(const core::Notification& notification, const Sender& sender);

}  // namespace tocsin::actions
