// Curves that people who have signed in chose for jobs.
#pragma once

#include <map>
#include <string>

#include "app/api/topic_watch.h"
#include "core/chart_view.h"

namespace tocsin::app {

class ChartViews final : public TopicWatch {
 public:
  void start_over() override { views_.clear(); }
  void saw(const core::RecordView& record, const TopicView& view) override;
  /// By id (core::view_id).
  [[nodiscard]] const std::map<std::string, core::ChartView>& views() const { return views_; }

 private:
  std::map<std::string, core::ChartView> views_;
};

}  // namespace tocsin::app
