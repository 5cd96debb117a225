// Schedules the system collectors of one node and counts how each of them fares.
#include <algorithm>
#include <utility>

#include "collectors/collectors.h"
#include "collectors/node/descriptors.h"

namespace tocsin::collectors {
// One collector and its telemetry.
struct Running {
  std::string name;
  std::shared_ptr<const CollectorConfig> asked;  // its section; nullptr: it has none
  std::unique_ptr<Collector> collector;
  core::Counter* errors = nullptr;
  core::Histogram* duration = nullptr;
  core::Gauge* last_success = nullptr;
  core::Duration every{};             // 0: every sweep
  std::optional<core::Duration> due;  // on the monotonic clock; a grid like the sweep's own
  bool failing = false;               // so that the log has one line per change, not one per sweep
};

struct NodeCollector::State {
  Config config;
  Surroundings surroundings;
  std::vector<Running> running;
  Sweep sweep{core::WallTime{}, core::Duration{}};
  std::optional<core::Duration> deadline;
  bool repaced = false;  // the deadline is one of the interval before
  Counters counters;
  core::NullTelemetry no_telemetry;
  core::NullLog no_log;

  [[nodiscard]] core::Telemetry& telemetry() {
    return surroundings.telemetry != nullptr ? *surroundings.telemetry : no_telemetry;
  }
  [[nodiscard]] core::Log& log() {
    return surroundings.log != nullptr ? *surroundings.log : no_log;
  }
  [[nodiscard]] core::Duration now() const {
    return surroundings.clock != nullptr ? surroundings.clock->monotonic() : core::Duration{};
  }

  void add(const CollectorDescriptor& descriptor) {
    Running each;
    each.name = std::string(descriptor.name);
    each.asked = section_of(each.name, config);
    const CollectorSettings settings = settings_of(descriptor, config);
    each.collector = settings.own->build({config.proc_root, config.sys_root});
    each.every = settings.every;
    const core::MetricLabels labels = {{"collector", descriptor.name}};
    each.errors = &telemetry().counter("tocsin_collectors_errors_total",
                                       "sweeps in which this collector failed", labels);
    each.duration = &telemetry().histogram("tocsin_collectors_sweep_duration_seconds",
                                           "time this collector took", labels);
    each.last_success = &telemetry().gauge("tocsin_collectors_last_success_timestamp_seconds",
                                           "when this collector last succeeded", labels);
    running.push_back(std::move(each));
  }

  static std::shared_ptr<const CollectorConfig> section_of(const std::string& name,
                                                           const Config& in) {
    const auto found = in.settings.find(name);
    return found == in.settings.end() ? nullptr : found->second.own;
  }

  /// nullptr: it does not run, or is told to run otherwise now.
  [[nodiscard]] Running* same(const CollectorDescriptor& descriptor, const Config& next) {
    if (next.proc_root != config.proc_root || next.sys_root != config.sys_root) return nullptr;
    const auto found = std::find_if(running.begin(), running.end(), [&](const Running& one) {
      return one.collector != nullptr && one.name == descriptor.name;
    });
    const bool goes_on = found != running.end() && found->asked == section_of(found->name, next) &&
                         found->every == settings_of(descriptor, next).every;
    return goes_on ? &*found : nullptr;
  }

  /// Is it this one's turn in the sweep at `time`? Turns that passed meanwhile are skipped.
  static bool turn(Running& each, core::Duration time) {
    if (each.every <= core::Duration{}) return true;
    if (!each.due) each.due = time;
    if (time < *each.due) return false;
    *each.due += ((time - *each.due) / each.every + 1) * each.every;
    return true;
  }

  void run(Running& each) {
    const std::size_t before = sweep.samples().size();
    const core::Duration start = now();
    const core::Status status = each.collector->collect(sweep);
    if (surroundings.clock != nullptr) {
      each.duration->observe(std::chrono::duration<double>(now() - start).count());
    }
    if (status) {
      each.last_success->set(
          std::chrono::duration<double>(sweep.time().time_since_epoch()).count());
      if (each.failing) log().info("collector_recovered", {{"collector", each.name}});
      each.failing = false;
      return;
    }
    sweep.keep(before);
    // A source that this machine does not have is a normal state, counted and said once; anything
    // else is not.
    const bool absent = status.error().code == core::Code::not_found;
    if (!absent || !each.failing) {
      ++counters.errors;
      each.errors->add();
    }
    if (!each.failing) {
      log().write(absent ? core::Level::info : core::Level::warn, "collector_failed",
                  {{"collector", each.name},
                   {"code", std::string(core::to_string(status.error().code))},
                   {"detail", status.error().message}});
    }
    each.failing = true;
  }
};

NodeCollector::NodeCollector(std::unique_ptr<State> state) : state_(std::move(state)) {}
NodeCollector::~NodeCollector() = default;

core::Result<std::unique_ptr<NodeCollector>> NodeCollector::open(
    const Config& config, Surroundings surroundings, std::span<const CollectorDescriptor> table) {
  auto state = std::make_unique<State>();
  state->config = config;
  state->config.interval = std::clamp(config.interval, kShortestInterval, kLongestInterval);
  state->surroundings = surroundings;
  for (const std::string& name : config.collectors) {
    const CollectorDescriptor* descriptor = find_collector(name, table);
    if (descriptor == nullptr) return core::invalid_argument(unknown_collector(name, table));
    state->add(*descriptor);
  }
  return std::unique_ptr<NodeCollector>(new NodeCollector(std::move(state)));
}

core::Status NodeCollector::change(const Config& config,
                                   std::span<const CollectorDescriptor> table) {
  State& state = *state_;
  std::vector<const CollectorDescriptor*> wanted;
  for (const std::string& name : config.collectors) {
    wanted.push_back(find_collector(name, table));
    if (wanted.back() == nullptr) return core::invalid_argument(unknown_collector(name, table));
  }
  std::vector<std::optional<Running>> kept;
  for (const CollectorDescriptor* descriptor : wanted) {
    Running* const same = state.same(*descriptor, config);
    kept.push_back(same == nullptr ? std::nullopt : std::optional(std::move(*same)));
  }
  state.running.clear();
  state.config = config;
  state.config.interval = std::clamp(config.interval, kShortestInterval, kLongestInterval);
  state.repaced = state.deadline.has_value();
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    if (kept[at]) {
      state.running.push_back(std::move(*kept[at]));
    } else {
      state.add(*wanted[at]);
    }
  }
  return core::ok();
}

core::Duration NodeCollector::tick(core::WallTime now, core::Duration monotonic, Sink sink) {
  State& state = *state_;
  const core::Duration interval = state.config.interval;
  if (!state.deadline) state.deadline = monotonic;
  // Not at once: a rate over a moment is noise.
  if (std::exchange(state.repaced, false))
    state.deadline =
        std::max(monotonic, std::min(*state.deadline, state.sweep.monotonic() + interval));
  if (monotonic < *state.deadline) return *state.deadline;
  // The next deadline stays on the grid of the first one; those that passed meanwhile are skipped.
  const auto passed = (monotonic - *state.deadline) / interval;
  state.counters.skipped += static_cast<std::uint64_t>(passed);
  *state.deadline += (passed + 1) * interval;

  state.sweep.restart(now, monotonic);
  for (Running& each : state.running) {
    if (State::turn(each, monotonic)) state.run(each);
  }
  ++state.counters.sweeps;
  state.counters.samples += state.sweep.samples().size();
  if (!state.sweep.samples().empty()) sink(state.sweep);
  return *state.deadline;
}

void NodeCollector::watch_process(std::int64_t pid) {
  for (Running& each : state_->running) each.collector->watch_process(pid);
}

void NodeCollector::forget_process(std::int64_t pid) {
  for (Running& each : state_->running) each.collector->forget_process(pid);
}

NodeCollector::Counters NodeCollector::counters() const noexcept { return state_->counters; }

}  // namespace tocsin::collectors
