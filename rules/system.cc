// System samples: snapshots of a node (samples within 20 ms), evaluation periods in event time.
#include <cmath>

#include "rules/engine_impl.h"

namespace tocsin::rules {
namespace {

constexpr std::int64_t kSnapshotWidth = 20'000'000;

/// What a series is to the rules: "hw.gpu.utilization{hw.id=0}".
struct Series {
  enum class What { other, gpu, cpu_idle, cpu_waiting, cpu_busy } what = What::other;
  std::string unit;  // device, or core
};

std::string attribute(std::string_view attributes, std::string_view key) {
  std::size_t from = 0;
  while (from < attributes.size()) {
    std::size_t to = attributes.find(',', from);
    if (to == std::string_view::npos) to = attributes.size();
    const std::string_view pair = attributes.substr(from, to - from);
    if (pair.size() > key.size() && pair.starts_with(key) && pair[key.size()] == '=') {
      return std::string(pair.substr(key.size() + 1));
    }
    from = to + 1;
  }
  return {};
}

Series parse(std::string_view name) {
  const std::size_t brace = name.find('{');
  const std::string_view metric = name.substr(0, brace);
  std::string_view attributes;
  if (brace != std::string_view::npos && name.ends_with('}')) {
    attributes = name.substr(brace + 1, name.size() - brace - 2);
  }
  if (metric == "hw.gpu.utilization") return {Series::What::gpu, std::string(attributes)};
  if (metric != "system.cpu.utilization") return {};
  Series series;
  series.unit = attribute(attributes, "cpu.logical_number");
  const std::string mode = attribute(attributes, "cpu.mode");
  if (mode == "idle") {
    series.what = Series::What::cpu_idle;
  } else if (mode == "iowait") {
    series.what = Series::What::cpu_waiting;
  } else {
    series.what = Series::What::cpu_busy;
  }
  return series;
}

double percent(double ratio) { return std::round(ratio * 1e8) / 1e6; }

// Floor division: times before 1970 have intervals too. Held at the end of the range.
std::int64_t interval_end(std::int64_t time, std::int64_t period) {
  std::int64_t number = time / period;
  if (time % period < 0) --number;
  std::int64_t end = 0;
  return __builtin_mul_overflow(number + 1, period, &end) ? kForever : end;
}

}  // namespace

void Engine::Impl::on_system(Run& run, std::uint32_t worker, const core::FrameView& frame) {
  if (system_rules.empty()) return;
  if (frame.header().row_stride < core::system_column::columns * core::kColumnBytes) return;
  NodeState& node = run.nodes[run.workers[worker].name_hash];
  if (node.lives.empty()) {
    node.worker = worker;
    node.states.resize(system_rules.size());
    node.interval.assign(system_rules.size(), kNever);
    node.lives.resize(system_rules.size());
    for (std::size_t s = 0; s < system_rules.size(); ++s) {
      system_rules[s].program->init(node.states[s]);
    }
  }
  const auto names = frame.column<std::uint64_t>(core::system_column::series);
  const auto times = frame.column<std::int64_t>(core::system_column::time);
  const auto ratios = frame.column<double>(core::system_column::value);
  for (std::size_t i = 0; i < frame.rows(); ++i) {
    const Name* const name = run.names.find(names[i]);
    if (name == nullptr) continue;
    const Series series = parse(name->text);
    if (series.what == Series::What::other) continue;
    const std::int64_t time = times[i];
    if (time > add(core::nanoseconds(ref.timestamp), options.config.max_clock_skew)) {
      ++stats.discarded_samples;  // the far future: it would make every later sample a late one
      continue;
    }
    if (node.started != kNever &&
        distance(node.started, time) > options.config.max_clock_skew.count()) {
      // The node's clock has stepped back: what is open belongs to a time that does not come again.
      node.started = kNever;
      node.gpus.clear();
      node.cores.clear();
    }
    if (node.started != kNever && time < node.started) {
      ++stats.late_rows;
      continue;
    }
    if (node.started != kNever && distance(time, node.started) > kSnapshotWidth) {
      close_snapshot(run, node);
      for (std::size_t s = 0; s < system_rules.size(); ++s) {
        if (node.interval[s] != kNever && time >= node.interval[s]) judge_interval(run, node, s);
      }
    }
    if (!(ratios[i] >= 0)) {  // also NaN
      ++stats.discarded_samples;
      continue;
    }
    if (node.started == kNever) node.started = time;
    if (series.what == Series::What::gpu) {
      node.gpus[series.unit] = std::min(percent(ratios[i]), 100.0);
      continue;
    }
    NodeState::Core& core = node.cores[series.unit];
    core.present = true;
    // Waiting for I/O is idle time of the processor, as in psutil.
    if (series.what == Series::What::cpu_busy) {
      core.busy += ratios[i];
    } else {
      core.idle += ratios[i];
      core.has_idle = core.has_idle || series.what == Series::What::cpu_idle;
    }
  }
}

void Engine::Impl::close_snapshot(Run& run, NodeState& node) {
  (void)run;
  if (node.started == kNever) return;
  std::vector<double> gpus;
  std::vector<double> cores;
  for (const auto& [device, value] : node.gpus) gpus.push_back(value);
  for (const auto& [number, core] : node.cores) {
    // 1 − idle where idle is sent, because a collector may leave out small modes; else their sum.
    const double busy = core.has_idle ? 1 - core.idle : core.busy;
    cores.push_back(std::min(std::max(percent(busy), 0.0), 100.0));
  }
  const SystemSnapshot snapshot{node.started, gpus, cores};
  for (std::size_t s = 0; s < system_rules.size(); ++s) {
    const SystemProgram& program = *system_rules[s].program;
    const std::int64_t end = interval_end(node.started, program.scan_interval.count());
    if (node.interval[s] != kNever && node.interval[s] != end) judge_interval(run, node, s);
    node.interval[s] = end;
    program.observe(node.states[s], snapshot);
  }
  node.started = kNever;
  node.gpus.clear();
  node.cores.clear();
}

void Engine::Impl::judge_interval(Run& run, NodeState& node, std::size_t s) {
  const SystemProgram& program = *system_rules[s].program;
  const std::uint32_t rule = system_rules[s].rule;
  const std::int64_t end = std::exchange(node.interval[s], kNever);
  const Worker& worker = run.workers[node.worker];
  const std::string name = worker.agent || worker.node.empty() ? worker.name : worker.node;
  const Verdict verdict = program.judge(node.states[s]);
  OutcomeCounts counts{};
  ++counts[static_cast<std::size_t>(verdict.outcome)];
  count(run, rule, counts);
  Place place;
  place.step_clock = false;
  place.time = end;
  place.first_time = distance(end, program.scan_interval.count());
  const auto labels = [&]() -> std::vector<std::pair<std::string, std::string>> {
    return {{"node", name}};
  };
  const auto explain = [&](unsigned kind) -> std::pair<Finding, Extra> {
    Subject subject;
    subject.name = name;
    Extra extra;
    extra.affected.hit = 1;
    extra.affected.evaluated = 1;
    return {program.explain(node.states[s], subject, kind), extra};
  };
  const Unit unit{{rule, kNoLane, worker.name_hash, 0xFF, 0}, kNoLane, labels};
  settle(run, rule, node.lives[s], unit, verdict, place, explain);
}

void Engine::Impl::flush_nodes(Run& run) {
  for (auto& [hash, node] : run.nodes) {
    close_snapshot(run, node);
    for (std::size_t s = 0; s < system_rules.size(); ++s) {
      if (node.interval[s] != kNever) judge_interval(run, node, s);
    }
  }
}

}  // namespace tocsin::rules
