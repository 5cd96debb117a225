// A notification as data for machines: native, Alertmanager v4 and CloudEvents bodies, without
// credentials. Internal to actions.
#pragma once

#include <string>
#include <string_view>

#include "core/notification.h"
#include "core/value.h"

namespace tocsin::actions {

/// Where a message comes from and points to.
struct Sender {
  std::string cluster = "default";
  std::string external_url;  // no trailing slash; empty = no links
};

/// W3C trace context, passed on to the far side.
struct TraceContext {
  std::string parent;  // both empty: there is none
  std::string state;
};
/// Of the first issue that has one.
TraceContext trace_of(const core::Notification& notification);

/// Our own form: status, kind, reason, labels, counts and every issue with its evidence; the
/// minimal form of a message whose full one was refused has the top issue's summary only.
core::Value native(const core::Notification& notification, const Sender& sender);
/// The webhook of Prometheus Alertmanager, version "4".
core::Value alertmanager_v4(const core::Notification& notification, const Sender& sender);
/// CloudEvents 1.0 structured mode: type dev.tocsin.notification.v1, data = native().
core::Value cloud_event(const core::Notification& notification, const Sender& sender);

}  // namespace tocsin::actions
