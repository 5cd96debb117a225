#include "app/api/chart_views.h"

#include <utility>

#include "core/fields/chart_view.h"
#include "core/topics.h"

namespace tocsin::app {

void ChartViews::saw(const core::RecordView& record, const TopicView& /*view*/) {
  const std::string_view key = record.key.value_or("");
  if (record.topic != core::topic::kRouterControl || !key.starts_with(core::kViewPrefix)) return;
  const std::string id(key.substr(core::kViewPrefix.size()));
  if (record.tombstone) {
    views_.erase(id);
    return;
  }
  auto view = core::read_chart_view(record.text());
  if (view && view->id == id) views_[id] = std::move(*view);
}

}  // namespace tocsin::app
