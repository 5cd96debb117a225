// Fires when a node runs too few or too many processes that load data.
//
// Reads   spans of the tracks dataloader/<n>, one track per loading process of a worker; and
//         system.cpu.utilization{cpu.logical_number=…} of the node, whose cores are counted.
// Window  per node, seconds in which a loading began, at most the last 1000; the others are none.
//         More than `patience` of them are needed.
// Fires   k, the whole part of the median number of processes in such a second, is below
//         min_threshold percent of the node's cores (too_few), or above max_threshold (too_many).
// Judged  once per evaluation period of event time that brought both inputs, when the node and the
//         workers that load on it have passed its end, or one of them has passed the next one's too.
// Quiet   where nobody reports loading processes. Loading in the main process gives k = 1.
// Source  Amazon SageMaker Debugger, Dataloader; docs/rules/dataloader.md.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "rules/contract/sentence.h"
#include "rules/evaluate/horizon.h"
#include "rules/evaluate/sample.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kLoaderKinds[] = {"too_few", "too_many"};
enum LoaderKind : unsigned { kTooFew, kTooMany };
constexpr std::size_t kMostSeconds = 1000;
constexpr std::size_t kMostDurations = 1000;
constexpr std::size_t kMostProcesses = 4096;  // of one second
constexpr std::int64_t kSecondNs = 1'000'000'000;

struct LoaderConfig : SampleConfig {
  std::uint32_t min_threshold = 70;
  std::uint32_t max_threshold = 200;
  std::uint32_t patience = 10;
};

/// A process in one second, and when it began to load there first.
struct Loading {
  std::uint64_t process = 0;
  std::int64_t first = 0;  // UTC ns
};

/// Inputs that a piece of time has brought.
struct LoaderInputs {
  bool loads = false;
  bool cores = false;
};

struct LoaderNode {
  std::map<std::int64_t, std::vector<Loading>> seconds;  // by second, sorted by process
  std::map<std::int64_t, LoaderInputs> open;             // by end of the piece of time
  std::map<std::uint64_t, std::int64_t> sources;  // newest time of a worker; kAgent: of the node
  std::uint64_t cores = 0;
  Ring durations;  // seconds of loading
  std::uint64_t arguments = 0;

  static constexpr std::uint64_t kAgent = UINT64_MAX;

  template <typename A>
  friend void io(A& a, LoaderNode& n) {
    io_all(a, n.seconds, n.open, n.sources, n.cores, n.durations, n.arguments);
  }

  void load(std::int64_t second, const Loading& one) {
    std::vector<Loading>& known = seconds[second];
    const auto place =
        std::lower_bound(known.begin(), known.end(), one,
                         [](const Loading& a, const Loading& b) { return a.process < b.process; });
    if (place != known.end() && place->process == one.process) {
      place->first = std::min(place->first, one.first);
    } else if (known.size() < kMostProcesses) {
      known.insert(place, one);
    }
    while (seconds.size() > kMostSeconds) seconds.erase(seconds.begin());
  }
  /// Processes in each second that had some before `end`.
  [[nodiscard]] std::vector<double> counts(std::int64_t end) const {
    std::vector<double> out;
    for (const auto& [second, known] : seconds) {
      const auto before = std::count_if(known.begin(), known.end(),
                                        [&](const Loading& one) { return one.first < end; });
      if (before > 0) out.push_back(static_cast<double>(before));
    }
    return out;
  }
  /// Whether nobody is expected to send something older than `end` any more.
  [[nodiscard]] bool passed(std::int64_t end, core::Duration period) const {
    const auto behind = [&](const auto& one) { return one.second < end; };
    const auto far_beyond = [&](const auto& one) { return one.second >= add(end, period); };
    const bool all = sources.contains(kAgent) && sources.size() > 1;
    return (all && std::none_of(sources.begin(), sources.end(), behind)) ||
           std::any_of(sources.begin(), sources.end(), far_beyond);
  }
};

struct LoaderState {
  std::map<std::string, LoaderNode> nodes;

  template <typename A>
  friend void io(A& a, LoaderState& s) {
    io_all(a, s.nodes);
  }
};

class LoaderEvaluator final : public EvaluatorOf<LoaderState> {
 public:
  explicit LoaderEvaluator(const LoaderConfig& config) : config_(config) {}

  void on_spans(std::uint32_t worker, const core::FrameView& frame, Scope& scope) override {
    const std::string name = scope.node(worker);
    if (name.empty()) return;
    LoaderNode* node = nullptr;
    for (std::size_t i = 0; i < frame.rows(); ++i) {
      const core::SpanRow span = frame.span(i);
      const Name* const track = scope.find(span.track);
      if (span.duration < 0 || track == nullptr || !track->text.starts_with("dataloader/")) {
        continue;
      }
      node = &state.nodes[name];
      node->load(floor_second(span.start),
                 {unit_number({std::to_string(worker), track->text}), span.start});
      node->durations.push(static_cast<double>(span.duration) / kSecondNs, kMostDurations);
      if (span.args != 0) node->arguments = span.args;
      node->open[interval_end(span.start, config_.scan_interval)].loads = true;
    }
    if (node != nullptr) hear(name, *node, worker, frame.header().time, scope);
  }
  void on_step_end(const WorkerStep& step, Scope& scope) override {
    const std::string name = scope.node(step.worker);
    const auto known = state.nodes.find(name);
    if (known == state.nodes.end() || !known->second.sources.contains(step.worker)) return;
    hear(name, known->second, step.worker, step.end, scope);
  }
  void on_snapshot(const NodeSnapshot& snapshot, Scope& scope) override {
    const std::string name(snapshot.name);
    LoaderNode& node = state.nodes[name];
    if (const auto cores = snapshot.of(Metric::cpu); !cores.empty()) {
      node.cores = cores.size();
      node.open[interval_end(snapshot.time, config_.scan_interval)].cores = true;
    }
    hear(name, node, LoaderNode::kAgent, snapshot.next, scope);
  }
  void on_end(Scope& scope) override {
    for (auto& [name, node] : state.nodes) {
      while (!node.open.empty()) judge_first(name, node, scope);
    }
  }

 private:
  static std::int64_t floor_second(std::int64_t time) noexcept {
    return time / kSecondNs - (time % kSecondNs < 0 ? 1 : 0);
  }

  void hear(const std::string& name, LoaderNode& node, std::uint64_t source, std::int64_t time,
            Scope& scope) {
    std::int64_t& newest = node.sources.try_emplace(source, time).first->second;
    newest = std::max(newest, time);
    while (!node.open.empty() && node.passed(node.open.begin()->first, config_.scan_interval)) {
      judge_first(name, node, scope);
    }
  }

  void judge_first(const std::string& name, LoaderNode& node, Scope& scope) {
    const auto [end, inputs] = *node.open.begin();
    node.open.erase(node.open.begin());
    if (!inputs.loads || !inputs.cores) return;  // nothing new to judge
    std::vector<double> counts = node.counts(end);
    Verdict verdict = kInsufficient;
    double k = 0;
    if (counts.size() > config_.patience) {
      std::sort(counts.begin(), counts.end());
      k = std::floor(quantile(counts, 0.5));
      const auto cores = static_cast<double>(node.cores);
      verdict = kOk;
      if (k * 100 < cores * config_.min_threshold) verdict = hit(kTooFew);
      if (k * 100 > cores * config_.max_threshold) verdict = hit(kTooMany);
    }
    Place place;
    place.step_clock = false;
    place.time = end;
    place.first_time = distance(end, config_.scan_interval.count());
    SampleReport report(scope, place, unit_number({name}), name);
    report.evaluated({}, verdict, [&](const Subject& subject, unsigned kind) {
      return explain(node, k, counts.size(), subject, kind, scope);
    });
  }

  [[nodiscard]] Finding explain(const LoaderNode& node, double k, std::size_t seconds,
                                const Subject& subject, unsigned kind, const Scope& scope) const {
    const bool few = kind == kTooFew;
    const std::uint32_t limit = few ? config_.min_threshold : config_.max_threshold;
    std::vector<double> took = node.durations.newest(kMostDurations);
    std::sort(took.begin(), took.end());
    std::set<std::uint64_t> processes;
    for (const auto& [second, known] : node.seconds) {
      for (const Loading& one : known) processes.insert(one.process);
    }
    const double cores = static_cast<double>(node.cores) * limit / 100;
    Finding finding = Finding::that("processes", k);
    finding.is(few ? "<" : ">", few ? "min_threshold" : "max_threshold", cores)
        .titled(sentence("data loader of {}", subject.name), Verb::has,
                few ? "too few workers" : "too many workers")
        .says(sentence("{} processes load data on {}, which has {} cores (expected: {} {}, {} % of "
                       "the cores).",
                       k, subject.name, node.cores, few ? "at least" : "at most", cores, limit))
        .advises(
            few ? "Give the data loader more worker processes (num_workers) if steps wait for data."
                : "Give the data loader fewer worker processes (num_workers). They compete for the "
                  "cores.")
        .with("cores", node.cores)
        .with("seconds", std::uint64_t{seconds})
        .with("worker_processes", std::uint64_t{processes.size()})
        .with("loading_p25_seconds", quantile(took, 0.25))
        .with("loading_p50_seconds", quantile(took, 0.5))
        .with("loading_p95_seconds", quantile(took, 0.95));
    if (node.arguments != 0) finding.with("arguments", scope.text(node.arguments));
    finding.points = seconds;
    return finding;
  }

  const LoaderConfig& config_;  // of the program, which outlives it
};

class LoaderProgram final : public Program {
 public:
  LoaderConfig config;
  [[nodiscard]] std::uint32_t inputs() const noexcept override {
    return input::kSpans | input::kSnapshots | input::kStepEnds;
  }
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<LoaderEvaluator>(config);
  }
  [[nodiscard]] bool step_clock() const noexcept override { return false; }
};

struct DataloaderRule {
  static constexpr std::string_view kMetrics[] = {"system.cpu.utilization"};

  static constexpr std::span<const std::string_view> kKinds = kLoaderKinds;

  static Defaults defaults(Preset) { return {.selects = false}; }

  static void read(config::Reader& in, LoaderConfig& cfg, Preset) {
    constexpr std::uint32_t kMostPercent = 100'000;
    in.optional("min_threshold", cfg.min_threshold, config::between(std::uint32_t{0}, kMostPercent),
                "loading processes below this percentage of the cores are too few");
    in.optional("max_threshold", cfg.max_threshold, config::between(std::uint32_t{0}, kMostPercent),
                "loading processes above this percentage of the cores are too many");
    in.optional("patience", cfg.patience, config::between(std::uint32_t{0}, Horizon::kMost),
                "seconds with loading before the first judgement");
    read_scan_interval(in, cfg);
    if (cfg.min_threshold > cfg.max_threshold) {
      in.error("min_threshold", "min_threshold must not be above max_threshold");
    }
  }
};

}  // namespace

RuleDescriptor dataloader() {
  return {.name = "dataloader",
          .original_name = "Dataloader",
          .title = "A node runs too few or too many data-loading processes.",
          .unit = "node",
          .needs = "data-loader events and CPU samples of the node",
          .presets = "",
          .severity = core::Severity::info,
          .metrics = DataloaderRule::kMetrics,
          .groups = group::kProfiler,
          .read = &read_rule<DataloaderRule, LoaderProgram>};
}

}  // namespace tocsin::rules
