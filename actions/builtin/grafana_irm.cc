// Opens and resolves an alert group in Grafana IRM (OnCall) for each group of issues.
//
// Sends       POST to a Formatted Webhook integration: alert_uid, title, state, message,
//             link_to_upstream_details; beside them severity and job, for routes and templates.
// Retries     by the table in http_outcome.cc; Retry-After obeyed.
// Idempotent  yes: alerts of one alert_uid are one alert group.
// Needs       an integration of the type Formatted Webhook, and its URL.
// Source      grafana.com/docs: Grafana IRM, incoming OnCall webhooks; rate limits of Grafana IRM.

#include "actions/integration/http_action.h"
#include "actions/integration/incident_text.h"
#include "actions/message/headline.h"

namespace tocsin::actions {
namespace {

struct GrafanaIrm final : HttpIntegration {
  GrafanaIrm() {
    url_means_ = "URL of the integration, https://…/integrations/v1/formatted_webhook/<token>/";
  }

  void keys(config::Reader& /*in*/) override {}

  [[nodiscard]] Rendered render(const core::Notification& notification,
                                const Sender& sender) const override {
    constexpr std::size_t kMessage = 16'000;
    const bool over = notification.kind == core::NotificationKind::close;
    core::ValueMap out{{"alert_uid", notification.group_hash},
                       {"title", headline(notification)},
                       {"state", over ? "ok" : "alerting"},
                       {"message", incident_text(notification, sender, plain_text(), kMessage)},
                       {"severity", std::string(to_string(core::worst_of(notification)))},
                       {"job", job_or_cluster(notification, sender)}};
    const std::string page = incident_page(notification, sender);
    if (!page.empty()) out.emplace_back("link_to_upstream_details", page);
    return {"application/json", core::to_json(std::move(out)), {}};
  }
};

}  // namespace

ActionDescriptor grafana_irm() {
  CommonConfig defaults;
  defaults.rate_limit = {300, std::chrono::minutes(5), 30};  // what an integration may receive
  return {"grafana_irm",
          "Opens and resolves alert groups in Grafana IRM (OnCall).",
          {.dedup = true},
          read_http<GrafanaIrm>,
          defaults};
}

}  // namespace tocsin::actions
