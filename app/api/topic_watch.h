// What else is kept of the records that the live view follows.
#pragma once

#include <string>
#include <vector>

#include "app/view/topic_view.h"
#include "core/record.h"
#include "core/time.h"

namespace tocsin::app {

/// Called by the view's thread with the view's lock held: what it keeps is read inside
/// LiveView::read().
class TopicWatch {
 public:
  TopicWatch() = default;
  TopicWatch(const TopicWatch&) = delete;
  TopicWatch& operator=(const TopicWatch&) = delete;
  virtual ~TopicWatch() = default;

  /// Topics that it needs beside those of TopicView.
  [[nodiscard]] virtual std::vector<std::string> topics() const { return {}; }
  /// All is read from the beginning from here on.
  virtual void start_over() = 0;
  /// `view` has taken the record.
  virtual void saw(const core::RecordView& record, const TopicView& view) = 0;
  /// The topics are read to their end; empty `why_not`: they are.
  virtual void stands(bool /*at_end*/, const std::string& /*why_not*/) {}
  /// What is over since before `before` need not be kept.
  virtual void forget(core::WallTime /*before*/) {}
};

}  // namespace tocsin::app
