// Open issues as alerts: with who is told of each, and what holds it back.
#pragma once

#include <string>
#include <vector>

#include "app/serve/url_query.h"
#include "app/view/held_back.h"
#include "app/view/topic_view.h"
#include "core/function_ref.h"
#include "core/issue.h"
#include "core/labels.h"
#include "core/result.h"
#include "core/time.h"
#include "routing/routing.h"

namespace tocsin::app {

/// Views of Alertmanager name alerts by `alertname`; issues of our rules have `rule`.
inline constexpr std::string_view kAlertName = "alertname";

/// Borrowed from the view.
struct ShownAlert {
  core::Labels labels;  // of the issue, and alertname
  const core::Issue& issue;
  core::WallTime since{};
  std::vector<routing::MatchedRoute> leaves;
  HeldBack held;
  std::vector<std::string> inhibited_by;  // fingerprints of the issues because of which it is
};

/// The query parameters of alerts and of their groups.
struct AlertFilter {
  bool active = true;          // alerts that people are told of
  bool silenced = true;        // those that a silence holds back
  bool inhibited = true;       // those that an inhibit rule holds back
  bool muted = true;           // those whose routes are all muted by time intervals
  routing::Matchers labels;    // `filter`, any number of them
  routing::Matchers receiver;  // on the label `receiver`; empty: all

  /// invalid_argument: an unknown parameter, or a value that is none.
  static core::Result<AlertFilter> parse(const UrlQuery& query);
};

/// Shows open alerts one after the other, by issue key: a list of them all would be many times as large
/// as what is said of them. Without a router in `sight` they reach nobody. An issue that does not end by
/// itself is over `resolve_timeout` after its last report.
void for_each_alert(const TopicView& view, const RoutingSight& sight, const AlertFilter& filter,
                    core::WallTime now, core::FunctionRef<void(const ShownAlert&)> show);

}  // namespace tocsin::app
