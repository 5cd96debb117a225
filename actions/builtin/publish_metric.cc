// Keeps the state of issues as metrics: for scraping, or as records of the topic `metrics`.
//
// Sends       scrape: nothing, the series are served at /metrics/issues. kafka: one record per
//             issue, key = run uid, value = array of JSON scalars.
// Retries     kafka only, while the topic cannot be written.
// Idempotent  state is published and not events; episodes are counted absolutely.
// Needs       scrape: nothing. kafka: the transport of the configuration.
// Source      Prometheus text exposition 0.0.4; docs/wire.md for the records.

#include "actions/contract/descriptor.h"
#include "actions/message/event_json.h"
#include "actions/message/issue_metrics.h"
#include "core/topics.h"

namespace tocsin::actions {
namespace {

struct MetricConfig final : ActionConfig {
  std::string transport = "scrape";
  IssueMetrics::Options options;

  [[nodiscard]] core::Result<std::unique_ptr<core::Action>> build(
      const Environment& environment, const IntegrationName& name,
      const CommonConfig& common) const override;
};

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

class PublishMetric final : public core::Action {
 public:
  PublishMetric(const MetricConfig& cfg, const Environment& environment)
      : cfg_(cfg),
        clock_(environment.clock),
        metrics_(environment.issue_metrics),
        publish_(environment.publish) {}

  [[nodiscard]] core::Result<std::string> render(
      const core::Notification& notification) const override {
    core::ValueList records;
    for (const auto& notified : notification.issues) {
      records.emplace_back(*record_of(notified, cfg_.options.labels).value);
    }
    return core::to_json(std::move(records));
  }

  core::AttemptOutcome execute(const core::Notification& notification, std::uint32_t /*attempt*/,
                               std::chrono::milliseconds /*budget*/) override {
    core::AttemptOutcome out;
    out.code = cfg_.transport;
    for (const auto& notified : notification.issues) {
      if (cfg_.transport == "scrape") {
        if (!metrics_->apply(notified, clock_->now()))
          out.detail = "over max_series: not all issues have a series";
        continue;
      }
      if (const auto written = publish_(record_of(notified, cfg_.options.labels)); !written) {
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
  MetricConfig cfg_;
  core::Clock* clock_;
  IssueMetrics* metrics_;
  std::function<core::Status(const core::OutRecord&)> publish_;
};

core::Result<std::unique_ptr<core::Action>> MetricConfig::build(
    const Environment& environment, const IntegrationName& name,
    const CommonConfig& /*common*/) const {
  const bool scrape = transport == "scrape";
  if (scrape && environment.issue_metrics == nullptr) {
    return core::Error{core::Code::failed_precondition, name.id + ": nothing serves the series"};
  }
  if (!scrape && !environment.publish) {
    return core::Error{core::Code::failed_precondition, name.id + ": no topic to write to"};
  }
  if (scrape) environment.issue_metrics->widen(options);
  return std::unique_ptr<core::Action>(std::make_unique<PublishMetric>(*this, environment));
}

std::shared_ptr<const ActionConfig> read_publish_metric(config::Reader& in) {
  auto cfg = std::make_shared<MetricConfig>();
  in.optional("transport", cfg->transport, config::one_of({"scrape", "kafka"}),
              "scrape: served at /metrics/issues; kafka: records of the topic metrics");
  in.optional("labels", cfg->options.labels, "labels of an issue that become labels of its series");
  std::uint64_t max_series = cfg->options.max_series;
  in.optional("max_series", max_series, config::between<std::uint64_t>(0, 1'000'000'000),
              "bound of the series kept for scraping; 0: none");
  cfg->options.max_series = max_series;
  in.optional("linger", cfg->options.linger, config::at_least(core::Duration{}),
              "how long a resolved issue stays as 0");
  if (const auto problem = metric_label_problem(cfg->options.labels);
      cfg->transport == "scrape" && !problem.empty()) {
    in.error("labels", problem);
  }
  return cfg;
}

}  // namespace

ActionDescriptor publish_metric() {
  return {"publish_metric",
          "Keeps the state of issues as metrics.",
          {.every_issue = true, .dedup = true, .keeps_state = true, .reads_issues = true},
          read_publish_metric,
          {}};
}

}  // namespace tocsin::actions
