// Shows each issue as an alert in Prometheus Alertmanager, where silences and inhibitions apply.
//
// Sends       POST /api/v2/alerts: labels, annotations, startsAt, endsAt, generatorURL of each issue.
// Retries     by the table in http_outcome.cc; Retry-After obeyed.
// Idempotent  an alert is its label set: sent again, it is the same alert.
// Needs       Alertmanager 0.16 or newer; each member of a cluster is an integration of its own.
// Source      Alertmanager's api/v2/openapi.yaml; Prometheus data model (names of labels).

#include <algorithm>

#include "actions/http_action.h"
#include "actions/prometheus_label.h"

namespace tocsin::actions {
namespace {

struct Alertmanager final : HttpIntegration {
  core::Duration resolve_timeout = std::chrono::hours(24);

  Alertmanager() { url_means_ = "base URL of one Alertmanager, such as https://am.example:9093"; }

  void keys(config::Reader& in) override {
    in.optional("resolve_timeout", resolve_timeout, config::positive(),
                "a firing alert is over when it was not repeated for so long");
  }

  // The short form has every alert too: one left out would stay as it was.
  [[nodiscard]] Rendered render(const core::Notification& notification,
                                const Sender& sender) const override {
    core::ValueList alerts;
    for (const auto& notified : notification.issues) {
      alerts.emplace_back(alert(notified.issue, notification, sender));
    }
    return {"application/json", core::to_json(std::move(alerts)), {}};
  }

  core::Status complete(HttpRequest& request, const HttpAttempt& /*attempt*/) const override {
    while (request.url.ends_with('/')) request.url.pop_back();
    request.url += "/api/v2/alerts";
    return core::ok();
  }

 private:
  [[nodiscard]] core::Value alert(const core::Issue& issue, const core::Notification& notification,
                                  const Sender& sender) const {
    auto labels = prometheus_labels(issue.labels);
    labels.try_emplace("alertname", issue.rule);
    const auto ends = issue.status == core::IssueStatus::firing
                          ? notification.decided_at + resolve_timeout
                          : issue.ends_at.value_or(notification.decided_at);
    std::map<std::string, std::string> words{{"summary", issue.summary}};
    core::ValueMap out{{"labels", text_map(labels)},
                       {"startsAt", core::to_rfc3339(std::min(issue.starts_at, ends))},
                       {"endsAt", core::to_rfc3339(ends)}};
    if (!notification.minimal) {
      for (const auto& [name, value] : issue.annotations) words[prometheus_label(name)] = value;
      words.insert({{"description", issue.description},
                    {"recommendation", issue.recommendation},
                    {"runbook_url", issue.runbook_url}});
      const auto& link = issue.generator_url.empty() ? sender.external_url : issue.generator_url;
      // Something else than a link would have the whole message refused.
      if (link.starts_with("http")) out.emplace_back("generatorURL", link);
    }
    out.emplace_back("annotations", text_map(words));
    return out;
  }
};

}  // namespace

ActionDescriptor alertmanager() {
  CommonConfig defaults;
  defaults.max_alerts = 500;
  return {"alertmanager",
          "Shows issues as alerts in Prometheus Alertmanager.",
          {.dedup = true},
          read_http<Alertmanager>,
          defaults};
}

}  // namespace tocsin::actions
