// How the router stands, kept of the records of its changelog.
#pragma once

#include <string>
#include <vector>

#include "app/api/topic_watch.h"
#include "core/topics.h"
#include "routing/routing.h"

namespace tocsin::app {

class StandingWatch final : public TopicWatch {
 public:
  [[nodiscard]] std::vector<std::string> topics() const override {
    return {core::topic::kRouterState};
  }
  void start_over() override { standing_ = routing::RouterStanding(); }
  void saw(const core::RecordView& record, const TopicView& /*view*/) override {
    if (record.topic != core::topic::kRouterState || !record.key) return;
    standing_.apply(*record.key, record.tombstone ? std::nullopt : std::optional(record.text()));
  }

  /// Inside LiveView::read(); at the same place for as long as this lives.
  [[nodiscard]] const routing::RouterStanding& standing() const noexcept { return standing_; }

 private:
  routing::RouterStanding standing_;
};

}  // namespace tocsin::app
