#include "core/fields/chart_view.h"

#include <optional>

#include "core/fields/json_in.h"
#include "core/fields/out.h"
#include "core/identity.h"
#include "core/topics.h"
#include "core/visible_text.h"

namespace tocsin::core {
namespace {

constexpr std::size_t kMostOfAView = std::size_t{32} << 10;
constexpr std::size_t kMostOfAChartName = 1000;  // bytes

}  // namespace

template <typename A>
void fields(A& io, Of<A, ChartView>& view) {
  io.field("id", view.id, "its name in the key", How::required);
  io.field("owner", view.owner, "who has chosen", How::required);
  io.field("job", view.job, "of which job", How::required);
  io.field("charts", view.charts, "names of curves");
  io.field("at", view.at, "when", How::required);
}

std::string view_id(std::string_view owner, std::string_view job) {
  return make_id("view_", {owner, job});
}

OutRecord view_record(const ChartView& view) {
  OutRecord out{topic::kRouterControl, std::string(kViewPrefix) + view.id, std::nullopt};
  if (!view.charts.empty()) out.value = view_json(view);
  out.partition = 0;
  return out;
}

std::string view_json(const ChartView& view) { return write_json(view); }

Result<ChartView> read_chart_view(std::string_view json) {
  ChartView out;
  if (const Status read = read_json(json, kMostOfAView, out); !read) return read.error();
  if (out.owner.size() > kMostOfAChartName || out.job.size() > kMostOfAChartName)
    return invalid_argument("owner and job have at most " + std::to_string(kMostOfAChartName) +
                            " bytes each");
  if (out.id != view_id(out.owner, out.job))
    return invalid_argument("id is \"" + visible(out.id, 60) +
                            "\": it is not that of owner and job");
  if (out.charts.size() > kMostChartsOfAView)
    return invalid_argument("charts: expected at most " + std::to_string(kMostChartsOfAView) +
                            " names, found " + std::to_string(out.charts.size()));
  for (const std::string& name : out.charts) {
    if (name.empty() || name.size() > kMostOfAChartName)
      return invalid_argument("charts: expected names of 1 to " +
                              std::to_string(kMostOfAChartName) + " bytes");
  }
  return out;
}

}  // namespace tocsin::core
