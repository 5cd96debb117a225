#include "actions/metrics/recorded_metrics.h"

#include <functional>
#include <utility>

#include "actions/metrics/recorded_scalars.h"
#include "core/topics.h"

namespace tocsin::actions {
namespace {

core::Value scalar(const core::NotifiedIssue& notified, const char* name, double value,
                   const std::vector<std::string>& allowed) {
  const core::Issue& issue = notified.issue;
  core::ValueMap labels;
  for (const std::string& label : allowed) {
    if (issue.labels.has(label)) labels.emplace_back(label, issue.labels.get(label));
  }
  core::ValueMap out{{"run", to_text(issue.run.uid)},
                     {"job", issue.run.job},
                     {"attempt", std::uint64_t{issue.run.attempt}},
                     {"name", name},
                     {"value", value},
                     {"time", core::to_rfc3339(issue.time)}};
  if (issue.step) out.emplace_back("step", *issue.step);
  if (issue.global_step) out.emplace_back("global_step", *issue.global_step);
  if (issue.mode) out.emplace_back("mode", std::string(to_string(*issue.mode)));
  out.emplace_back("labels", std::move(labels));
  return out;
}

core::OutRecord record_of(const core::NotifiedIssue& notified,
                          const std::vector<std::string>& allowed) {
  const core::Issue& issue = notified.issue;
  const bool firing = issue.status == core::IssueStatus::firing;
  const core::WallTime transition = firing ? issue.starts_at : issue.ends_at.value_or(issue.time);
  core::OutRecord out;
  out.topic = core::topic::kMetrics;
  out.key = to_text(issue.run.uid);
  out.value = core::to_json(
      core::ValueList{scalar(notified, "tocsin_issue_active", firing ? 1 : 0, allowed),
                      scalar(notified, "tocsin_issue_last_transition_timestamp_seconds",
                             static_cast<double>(core::nanoseconds(transition)) / 1e9, allowed),
                      scalar(notified, "tocsin_issue_episodes_total",
                             static_cast<double>(notified.episode), allowed)});
  out.timestamp = core::nanoseconds(issue.time);
  return out;
}

class RecordedMetrics final : public core::Action {
 public:
  RecordedMetrics(const PushSettings& settings, const Environment& environment,
                  const IntegrationName& name)
      : labels_(settings.series.labels),
        publish_(environment.publish),
        scalars_(RecordedScalars::make(settings, environment, name)) {}

  [[nodiscard]] core::Result<std::string> render(
      const core::Notification& notification) const override {
    return state_text(notification, labels_);
  }

  core::AttemptOutcome execute(const core::Notification& notification, std::uint32_t /*attempt*/,
                               std::chrono::milliseconds /*budget*/) override {
    core::AttemptOutcome out;
    out.code = "kafka";
    for (const auto& notified : notification.issues) {
      if (const auto written = publish_(record_of(notified, labels_)); !written) {
        out.outcome = written.error().retryable() ? core::OutcomeClass::transient
                                                  : core::OutcomeClass::configuration;
        out.code = to_string(written.error().code);
        out.detail = written.error().message;
        return out;
      }
    }
    return out;
  }

 private:
  const std::vector<std::string> labels_;
  const std::function<core::Status(const core::OutRecord&)> publish_;
  const std::unique_ptr<RecordedScalars> scalars_;  // null: none are asked for
};

class ScrapedMetrics final : public core::Action {
 public:
  ScrapedMetrics(std::vector<std::string> labels, const Environment& environment)
      : labels_(std::move(labels)),
        clock_(*environment.clock),
        metrics_(*environment.issue_metrics) {}

  [[nodiscard]] core::Result<std::string> render(
      const core::Notification& notification) const override {
    return state_text(notification, labels_);
  }

  core::AttemptOutcome execute(const core::Notification& notification, std::uint32_t /*attempt*/,
                               std::chrono::milliseconds /*budget*/) override {
    core::AttemptOutcome out;
    out.code = "scrape";
    for (const auto& notified : notification.issues) {
      if (!metrics_.apply(notified, clock_.now())) {
        out.detail = "over max_series: not all issues have a series";
      }
    }
    return out;
  }

 private:
  const std::vector<std::string> labels_;
  core::Clock& clock_;
  IssueMetrics& metrics_;
};

}  // namespace

std::string state_text(const core::Notification& notification,
                       const std::vector<std::string>& labels) {
  core::ValueList records;
  for (const auto& notified : notification.issues) {
    records.emplace_back(*record_of(notified, labels).value);
  }
  return core::to_json(std::move(records));
}

core::Result<std::unique_ptr<core::Action>> recorded_metrics(const PushSettings& settings,
                                                             const Environment& environment,
                                                             const IntegrationName& name) {
  if (!environment.publish) {
    return core::Error{core::Code::failed_precondition, name.id + ": no topic to write to"};
  }
  return std::unique_ptr<core::Action>(
      std::make_unique<RecordedMetrics>(settings, environment, name));
}

core::Result<std::unique_ptr<core::Action>> scraped_metrics(const PushSettings& settings,
                                                            const Environment& environment,
                                                            const IntegrationName& name) {
  if (environment.issue_metrics == nullptr) {
    return core::Error{core::Code::failed_precondition, name.id + ": nothing serves the series"};
  }
  environment.issue_metrics->widen(settings.series);
  if (environment.scalars != nullptr && !settings.scalars.patterns.empty()) {
    environment.scalars->want(name.id, settings.scalars, true);
  }
  return std::unique_ptr<core::Action>(
      std::make_unique<ScrapedMetrics>(settings.series.labels, environment));
}

}  // namespace tocsin::actions
