// The way of an issue as spans: the event (measured, published, judged), the message that tells of it,
// and each attempt to deliver that (docs/tracing.md).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actions/message/span_context.h"
#include "actions/spans/span.h"
#include "core/notification.h"

namespace tocsin::actions {

/// Turns records into spans, as they come. Knows the newest messages and events, and no more.
class AlarmSpans {
 public:
  /// Its issues may be packed. Of an event that an earlier message told, no span comes again.
  std::vector<Span> of(core::Notification notification);
  /// nullopt: nothing was sent, or its producer does not record the trace.
  std::optional<Span> of(const core::Delivery& delivery);
  /// Was the message read?
  [[nodiscard]] bool knows(const std::string& notification_id) const {
    return messages_.contains(notification_id);
  }
  void clear();

 private:
  void remember(const std::string& notification_id, SpanContext context);
  bool is_news(const std::string& event_id);

  std::map<std::string, SpanContext> messages_;  // by notification id
  std::deque<std::string> message_order_;
  std::set<std::string> events_;
  std::deque<std::string> event_order_;
};

}  // namespace tocsin::actions
