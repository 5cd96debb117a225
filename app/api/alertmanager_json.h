// The JSON of Alertmanager's API v2, so that karma, Grafana and amtool read ours. Source:
// https://github.com/prometheus/alertmanager, api/v2/openapi.yaml.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "app/api/alert_list.h"
#include "core/result.h"
#include "core/time.h"
#include "core/value.h"
#include "routing/routing.h"

namespace tocsin::app {

/// `gettableAlert`. One that fires is shown as ending `resolve_timeout` from now, as Alertmanager
/// shows it.
core::Value alert_value(const ShownAlert& alert, core::Duration resolve_timeout,
                        core::WallTime now);
/// `alertGroups`: by receiver and the labels that its route groups by. Each alert as its JSON.
class AlertGroups {
 public:
  /// `json`: of alert_value().
  void add(const ShownAlert& alert, const std::string& json, const routing::Matchers& receiver);
  [[nodiscard]] std::string json() const;

 private:
  struct Group {
    core::Labels labels;
    std::string alerts;  // JSON, with commas between
  };
  std::map<std::pair<std::string, std::string>, Group> groups_;  // by receiver and group key
};
/// `gettableSilence`.
core::Value silence_value(const routing::Silence& silence, core::WallTime now);

/// `postableSilence`, without an id of ours and without who asked for it. A matcher on `alertname`
/// is one on `rule`. `id`: of the silence that it takes the place of; empty: none.
struct AskedSilence {
  std::string id;
  std::uint64_t version = 0;  // that the change follows from; 0: of any
  routing::Silence silence;
};
/// invalid_argument: what is wrong, with the name of its field.
core::Result<AskedSilence> read_asked_silence(std::string_view json);

/// One of `postableAlerts` as an event of our own, in CloudEvents' structured form. `at`: when it
/// came. An alert without `rule` gets its alertname as that.
core::Result<core::Value> event_of_alert(const core::Value& alert, core::Duration resolve_timeout,
                                         core::WallTime at);

}  // namespace tocsin::app
