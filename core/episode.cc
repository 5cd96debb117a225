#include "core/episode.h"

#include <utility>

namespace tocsin::core {

bool outranks(const Issue& report, const Issue& found) noexcept {
  return report.severity > found.severity;
}

Ending ending_of(const Issue& resolve, const Issue& found) {
  Ending out;
  if (resolve.ending) {
    out = *resolve.ending;
  } else {
    if (resolve.summary != found.summary) out.summary = resolve.summary;
    out.step = resolve.step;
    out.global_step = resolve.global_step;
  }
  if (out.event_id.empty()) out.event_id = resolve.event_id;
  return out;
}

void end_with(Issue& found, const Issue& resolve) {
  found.ending = ending_of(resolve, found);
  found.status = IssueStatus::resolved;
  found.resolution =
      resolve.resolution == Resolution::none ? Resolution::recovered : resolve.resolution;
  found.ends_at = resolve.ends_at;
  // Latencies are those of what is told.
  found.measured_at = resolve.measured_at;
  found.published_at = resolve.published_at;
  found.evaluated_at = resolve.evaluated_at;
}

std::string_view end_sentence(Resolution resolution) noexcept {
  switch (resolution) {
    case Resolution::none:
      return "";
    case Resolution::recovered:
      return "Back to normal.";
    case Resolution::job_ended:
      return "The job ended while this fired.";
    case Resolution::superseded:
      return "A new attempt of the run has started; this concerned the one before.";
    case Resolution::expired:
      return "No longer followed: nothing more was heard of it.";
    case Resolution::manual:
      return "A person resolved it.";
    case Resolution::rule_removed:
      return "Its rule was removed from the configuration; it did not recover.";
    case Resolution::rule_changed:
      return "Its rule was changed in the configuration; it did not recover.";
  }
  return "";
}

const std::string& news_of(const Issue& report) noexcept {
  const bool ends = report.ending && !report.ending->summary.empty();
  return ends ? report.ending->summary : report.summary;
}

std::optional<std::int64_t> step_of_news(const Issue& report) noexcept {
  return report.ending ? report.ending->step : report.step;
}

void end_alone(Issue& resolve) {
  if (!resolve.ending) resolve.ending = Ending{};
  if (resolve.ending->event_id.empty()) resolve.ending->event_id = resolve.event_id;
  if (resolve.resolution == Resolution::none) resolve.resolution = Resolution::recovered;
}

}  // namespace tocsin::core
