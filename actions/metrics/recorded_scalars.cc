#include "actions/metrics/recorded_scalars.h"

#include <map>
#include <utility>

#include "core/json.h"
#include "core/topics.h"

namespace tocsin::actions {
namespace {

core::Value recorded_value(const LoggedScalar& one) {
  return core::ValueMap{{"run", to_text(one.run)},
                        {"job", one.job},
                        {"name", kScalarFamilies[0].name},
                        {"value", one.value},
                        {"time", core::to_rfc3339(one.time)},
                        {"step", one.step},
                        {"mode", std::string(to_string(one.mode))},
                        {"labels", core::ValueMap{{"scalar", one.name},
                                                  {"rank", std::to_string(one.rank)},
                                                  {"worker", one.worker}}}};
}

}  // namespace

std::unique_ptr<RecordedScalars> RecordedScalars::make(const PushSettings& settings,
                                                       const Environment& environment,
                                                       const IntegrationName& name) {
  if (settings.scalars.patterns.empty() || environment.scalars == nullptr) return nullptr;
  return std::make_unique<RecordedScalars>(settings, environment, name);
}

RecordedScalars::RecordedScalars(const PushSettings& settings, const Environment& environment,
                                 const IntegrationName& name)
    : integration_(name.id),
      interval_(settings.interval),
      clock_(*environment.clock),
      log_(*environment.log),
      rounds_failed_(environment.telemetry->counter("tocsin_router_metric_rounds_failed_total",
                                                    "periodic pushes of publish_metric that failed",
                                                    {{"integration", name.id}})),
      delivers_(environment.delivers),
      publish_(environment.publish),
      scalars_(*environment.scalars) {
  scalars_.want(integration_, settings.scalars);
  due_ = clock_.monotonic();
  if (delivers_) rounds_ = std::make_unique<PushRounds>([this] { turn(); });
}

RecordedScalars::~RecordedScalars() { rounds_.reset(); }

void RecordedScalars::turn() {
  if ((delivers_ && !delivers_()) || clock_.monotonic() < due_) return;
  due_ = clock_.monotonic() + interval_;
  const core::Status written = write();
  if (!written) rounds_failed_.add(1);
  if (written.has_value() != std::exchange(failing_, !written)) return;
  if (!written) {
    log_.warn("metrics_push_failed",
              {{"integration", integration_}, {"detail", written.error().message}});
  } else {
    log_.info("metrics_push_recovered", {{"integration", integration_}});
  }
}

core::Status RecordedScalars::write() {
  std::map<core::RunUid, core::ValueList> by_run;
  const core::WallTime now = clock_.now();
  for (const LoggedScalar& one : scalars_.newest(integration_, now)) {
    by_run[one.run].push_back(recorded_value(one));
  }
  for (auto& [run, values] : by_run) {
    core::OutRecord record;
    record.topic = core::topic::kMetrics;
    record.key = to_text(run);
    record.value = core::to_json(std::move(values));
    record.timestamp = core::nanoseconds(now);
    if (auto written = publish_(record); !written) return written;
  }
  return core::ok();
}

}  // namespace tocsin::actions
