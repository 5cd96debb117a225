// Keeps the state of issues as metrics: for scraping, as records of the topic `metrics`, or pushed to
// a system that takes metrics.
//
// Sends       scrape: nothing, the series are served at /metrics/issues. kafka: one record per
//             issue, key = run uid, value = array of JSON scalars. All others: actions/metrics/.
// Retries     while the far side cannot be written to.
// Idempotent  state is published and not events; episodes are counted absolutely.
// Needs       scrape: nothing. kafka: the transport of the configuration. Others: their far side.
// Source      Prometheus text exposition 0.0.4; docs/wire.md for the records.

#include <algorithm>
#include <map>

#include "actions/contract/descriptor.h"
#include "actions/message/issue_metrics.h"
#include "actions/metrics/metric_transport.h"
#include "actions/metrics/pushed_metrics.h"
#include "actions/metrics/recorded_metrics.h"

namespace tocsin::actions {
namespace {

constexpr std::string_view kScrape = "scrape";
constexpr std::string_view kRecords = "kafka";

struct MetricConfig final : ActionConfig, std::enable_shared_from_this<MetricConfig> {
  std::string transport{kScrape};
  PushSettings settings;
  HttpSettings http;
  std::map<std::string_view, std::unique_ptr<MetricTransport>> pushing;  // by name

  [[nodiscard]] bool pushes() const { return transport != kScrape && transport != kRecords; }
  [[nodiscard]] bool takes_test_messages() const override { return pushes(); }

  [[nodiscard]] core::Result<std::unique_ptr<core::Action>> build(
      const Environment& environment, const IntegrationName& name,
      const CommonConfig& common) const override {
    if (transport == kScrape) return scraped_metrics(settings, environment, name);
    if (transport == kRecords) return recorded_metrics(settings, environment, name);
    auto sink = pushing.at(transport)->sink(http, environment, common);
    return std::unique_ptr<core::Action>(std::make_unique<PushedMetrics>(
        settings, shared_from_this(), std::move(sink), environment, name, common));
  }
};

const MetricTransportDescriptor* chosen_transport(const std::string& name) {
  const auto all = metric_transports();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::string names_of_transports(bool (*wanted)(const MetricTransportDescriptor&)) {
  std::string out;
  for (const auto& one : metric_transports()) {
    if (wanted(one)) out += (out.empty() ? "" : ", ") + std::string(one.name);
  }
  return out;
}

/// A key of another transport would do nothing.
void check_keys(config::Reader& in, const MetricTransportDescriptor* chosen) {
  for (const auto& one : metric_transports()) {
    for (const std::string_view key : one.keys) {
      const bool own = chosen != nullptr && std::find(chosen->keys.begin(), chosen->keys.end(),
                                                      key) != chosen->keys.end();
      if (!own && in.has(key)) {
        in.error(key, "belongs to transport: " + std::string(one.name));
      }
    }
  }
  if (chosen != nullptr && chosen->over_http) return;
  for (const std::string_view key : kHttpKeys) {
    if (!in.has(key)) continue;
    in.error(key, "belongs to a transport over HTTP: " +
                      names_of_transports([](const auto& one) { return one.over_http; }));
  }
}

void read_transport(config::Reader& in, MetricConfig& cfg) {
  std::vector<std::string> names{std::string(kScrape), std::string(kRecords)};
  std::string help = "scrape: served at /metrics/issues; kafka: records of the topic metrics";
  for (const auto& one : metric_transports()) {
    names.emplace_back(one.name);
    help += "; " + std::string(one.name) + ": " + std::string(one.summary);
  }
  in.optional("transport", cfg.transport, config::one_of(std::move(names)), help);
}

void read_scalars(config::Reader& in, PushSettings& settings) {
  TrainingScalars::Options& own = settings.scalars;
  in.optional("scalars", own.patterns,
              "names of logged scalars whose newest values are published too (RE2, the whole "
              "name); none by default");
  std::uint64_t most = own.max_series;
  in.optional("max_scalars", most, config::between<std::uint64_t>(1, 100'000),
              "bound of the scalars kept, each of one rank of one run");
  own.max_series = most;
  own.linger = settings.series.linger;
  if (const auto problem = scalar_pattern_problem(own.patterns); !problem.empty()) {
    in.error("scalars", problem);
  }
}

std::shared_ptr<const ActionConfig> read_publish_metric(config::Reader& in) {
  auto cfg = std::make_shared<MetricConfig>();
  IssueMetrics::Options& series = cfg->settings.series;
  read_transport(in, *cfg);
  in.optional("labels", series.labels, "labels of an issue that become labels of its series");
  std::uint64_t max_series = series.max_series;
  in.optional("max_series", max_series, config::between<std::uint64_t>(0, 1'000'000'000),
              "bound of the series kept; 0: none");
  series.max_series = max_series;
  in.optional("linger", series.linger, config::at_least(core::Duration{}),
              "how long a resolved issue stays as 0");
  read_scalars(in, cfg->settings);
  in.optional("interval", cfg->settings.interval,
              config::between<core::Duration>(std::chrono::seconds(1), std::chrono::hours(24)),
              "of a transport that pushes: everything is pushed again so often");
  in.secret("url", cfg->http.url, "where to push, of a transport over HTTP");
  for (const auto& one : metric_transports()) {
    auto transport = one.make();
    transport->declare(in);
    cfg->pushing.emplace(one.name, std::move(transport));
  }
  cfg->http.declare(in);
  if (in.describing()) return cfg;
  const MetricTransportDescriptor* chosen = chosen_transport(cfg->transport);
  check_keys(in, chosen);
  if (chosen != nullptr && chosen->needs_url && !cfg->http.url.set()) {
    in.error("url", "transport: " + cfg->transport + " needs url or url_file");
  }
  if (chosen != nullptr) {
    const MetricTransport& transport = *cfg->pushing.at(chosen->name);
    transport.check(in, cfg->http);
    if (!cfg->http.url.set()) cfg->http.url = config::Secret::from_value(transport.default_url());
  }
  if (const auto problem = metric_label_problem(series.labels);
      cfg->transport != kRecords && !problem.empty()) {
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
