// Shows each issue as an alert in Prometheus Alertmanager, where silences and inhibitions apply.
//
// Sends       POST /api/v2/alerts: labels, annotations, startsAt, endsAt, generatorURL of each issue,
//             in several requests where they have more than max_payload bytes.
// Retries     by the table in http_outcome.cc; Retry-After obeyed.
// Idempotent  an alert is its label set: sent again, it is the same alert.
// Needs       Alertmanager 0.16 or newer; each member of a cluster is an integration of its own.
// Source      Alertmanager's api/v2/openapi.yaml; Prometheus data model (names of labels).

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "actions/integration/http_action.h"
#include "actions/message/episode_words.h"
#include "actions/message/prometheus_label.h"
#include "core/text.h"

namespace tocsin::actions {
namespace {

using nlohmann::json;

bool is_plain_in_host(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == ':' || c == '_';
}

bool is_hex(std::string_view text, std::size_t i) {
  return i < text.size() && std::isxdigit(static_cast<unsigned char>(text[i])) != 0;
}

/// Of what stands behind the host.
bool is_plain_in_path(std::string_view text, std::size_t i) {
  const char c = text[i];
  if (c <= ' ' || c > '~' || std::string_view("\"<>\\^`{|}").find(c) != std::string_view::npos) {
    return false;
  }
  return c != '%' || (is_hex(text, i + 1) && is_hex(text, i + 2));
}

/// Would Alertmanager take it for a URL? One that it does not would have the whole request refused.
bool is_link(std::string_view text) {
  const std::size_t host = text.starts_with("https://") ? 8 : text.starts_with("http://") ? 7 : 0;
  if (host == 0 || text.size() > 2048) return false;
  const auto end = std::min(text.find_first_of("/?#", host), text.size());
  const std::string_view authority = text.substr(host, end - host);
  if (authority.empty() || !std::all_of(authority.begin(), authority.end(), is_plain_in_host)) {
    return false;
  }
  for (std::size_t i = end; i < text.size(); ++i) {
    if (!is_plain_in_path(text, i)) return false;
  }
  return true;
}

struct Alertmanager final : HttpIntegration {
  core::Duration resolve_timeout = std::chrono::hours(24);

  Alertmanager() { url_means_ = "base URL of one Alertmanager, such as https://am.example:9093"; }

  void keys(config::Reader& in) override {
    in.optional("resolve_timeout", resolve_timeout, config::positive(),
                "a firing alert is over when it was not repeated for so long");
  }

  // The short form has every alert too: one left out would stay as it was.
  [[nodiscard]] bool sends_batches() const override { return true; }

  [[nodiscard]] std::vector<std::string> batches(const Rendered& rendered,
                                                 std::size_t limit) const override {
    const json alerts = json::parse(rendered.body, nullptr, false);
    if (!alerts.is_array()) return {rendered.body};
    std::vector<std::string> out;
    for (const json& alert : alerts) {
      std::string text = text_of(alert);
      if (text.size() + 2 > limit) text = text_of(shortened(alert));
      if (out.empty() || out.back().size() + text.size() + 2 > limit) {
        out.push_back("[" + text);
      } else {
        out.back() += "," + text;
      }
    }
    for (std::string& batch : out) batch += "]";
    return out;
  }

  // Alertmanager names what it refuses, but not in a form that can be read: cut until it is alone.
  [[nodiscard]] std::vector<std::string> in_place_of(const std::string& batch) const override {
    const json alerts = json::parse(batch, nullptr, false);
    if (!alerts.is_array() || alerts.empty()) return {};
    if (alerts.size() == 1) {
      const json less = shortened(alerts.front());
      if (less == alerts.front()) return {};
      return {text_of(json::array({less}))};
    }
    const auto middle = alerts.begin() + static_cast<std::ptrdiff_t>(alerts.size() / 2);
    return {text_of(json(std::vector<json>(alerts.begin(), middle))),
            text_of(json(std::vector<json>(middle, alerts.end())))};
  }

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
  static std::string text_of(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
  }

  /// Without what is not needed: labels, times, and the beginning of the summary.
  static json shortened(const json& alert) {
    json out = alert;
    out.erase("generatorURL");
    std::string summary;
    if (const auto words = alert.find("annotations"); words != alert.end() && words->is_object()) {
      const auto found = words->find("summary");
      if (found != words->end() && found->is_string()) summary = found->get<std::string>();
    }
    out["annotations"] = {{"summary", core::cut_utf8(summary, 200)}};
    return out;
  }

  [[nodiscard]] core::Value alert(const core::Issue& issue, const core::Notification& notification,
                                  const Sender& sender) const {
    auto labels = prometheus_labels(issue.labels);
    labels.try_emplace("alertname", issue.rule);
    if (labels["alertname"].empty()) labels["alertname"] = "tocsin";  // an alert has a label
    // Alertmanager tells nobody of what is over when it first hears of it.
    const bool unheard = notification.kind == core::NotificationKind::open;
    const auto ends = issue.status == core::IssueStatus::firing || unheard
                          ? notification.decided_at + resolve_timeout
                          : issue.ends_at.value_or(notification.decided_at);
    std::map<std::string, std::string> words{{"summary", first_line(issue)}};
    core::ValueMap out{
        {"labels", text_map(labels)},
        {"startsAt", core::to_rfc3339(std::min(begin_of(issue, notification), ends))},
        {"endsAt", core::to_rfc3339(ends)}};
    if (!notification.minimal) {
      for (const auto& [name, value] : issue.annotations) words[prometheus_label(name)] = value;
      words.insert({{"description", issue.description},
                    {"recommendation", issue.recommendation},
                    {"runbook_url", issue.runbook_url}});
      for (auto& [name, text] : ending_annotations(notification, issue)) words[name] = text;
      const auto& link = issue.generator_url.empty() ? sender.external_url : issue.generator_url;
      if (is_link(link)) out.emplace_back("generatorURL", link);
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
          {.every_issue = true, .dedup = true},
          read_http<Alertmanager>,
          defaults};
}

}  // namespace tocsin::actions
