// Fires when the GPUs of a job carry unequal loads.
//
// Reads   system samples hw.gpu.utilization{hw.id=…} of all nodes of the run.
// Window  since the start: each GPU with more than `patience` samples has a histogram of 50 bins of
//         width 2 over 0…100, the last one closed. Judged once per evaluation period, when the
//         samples of all nodes have passed its end (one that lags by more than two periods and two
//         minutes is not waited for).
// Fires   √(½ KL(p‖m) + ½ KL(q‖m)) > threshold for some pair of GPUs, m the mean of both: the
//         distance of Jensen and Shannon with natural logarithms, at most √ln 2 ≈ 0.8326. Kind
//         `unused` for pairs with a GPU that was never used, `imbalanced` for the others. Beyond 64
//         GPUs each is compared with the mean histogram.
// Quiet   with one GPU, and between two that were never used. A GPU that is silent for longer than
//         ten sampling periods is left out: 500 ms each, or, where its own samples have never been
//         nearer than 2 s, the least distance between two of them.
// Source  Amazon SageMaker Debugger, LoadBalancing; docs/rules/load_balancing.md. Threshold: a
//         distance, so what lies above 0.8326 could never fire and is refused.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "rules/contract/sentence.h"
#include "rules/evaluate/horizon.h"
#include "rules/evaluate/sample.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kBalanceKinds[] = {"unused", "imbalanced"};
enum BalanceKind : unsigned { kUnused, kImbalanced };
constexpr std::size_t kBins = 50;
constexpr std::size_t kMostPairs = 64;  // GPUs up to which all pairs are compared
constexpr double kFarthest = 0.8326;    // √ln 2

using Histogram = std::array<double, kBins>;

struct LoadBalancingConfig : SampleConfig {
  double threshold = 0.5;
  Horizon horizon;
  bool per_node = false;
};

struct Gpu {
  std::array<std::uint64_t, kBins> counts{};
  std::uint64_t samples = 0;
  double max = 0;
  std::int64_t first_time = 0;
  std::int64_t last_time = 0;
  std::int64_t nearest = INT64_MAX;  // least distance between two samples

  /// How long it may say nothing: nobody tells the engine how often samples are taken.
  [[nodiscard]] std::int64_t patience() const noexcept {
    constexpr std::int64_t kUsual = 500'000'000;
    constexpr std::int64_t kRare = 2'000'000'000;
    constexpr std::int64_t kMost = 60'000'000'000;
    const bool rare = nearest >= kRare && nearest != INT64_MAX;
    return 10 * (rare ? std::min(nearest, kMost) : kUsual);
  }
};

struct LoadBalancingState {
  struct Node {
    std::string name;
    std::int64_t passed = INT64_MIN;  // all its samples before this time are here
    std::map<std::string, Gpu> gpus;

    template <typename A>
    friend void io(A& a, Node& n) {
      io_all(a, n.name, n.passed, n.gpus);
    }
  };
  struct Sample {
    std::int64_t time = 0;
    std::uint64_t node = 0;
    std::string device;
    double value = 0;

    template <typename A>
    friend void io(A& a, Sample& s) {
      io_all(a, s.time, s.node, s.device, s.value);
    }
  };
  std::map<std::uint64_t, Node> nodes;
  /// Of periods that some node has not passed: per node, or 0 for the whole job.
  std::map<std::uint64_t, std::vector<Sample>> waiting;
  std::map<std::uint64_t, std::int64_t> judged;  // end of the newest period, likewise

  template <typename A>
  friend void io(A& a, LoadBalancingState& s) {
    io_all(a, s.nodes, s.waiting, s.judged);
  }
};

Histogram shares(const Gpu& gpu) {
  Histogram out{};
  for (std::size_t i = 0; i < kBins; ++i) {
    out[i] = static_cast<double>(gpu.counts[i]) / static_cast<double>(gpu.samples);
  }
  return out;
}

double distance_of(const Histogram& p, const Histogram& q) {
  double sum = 0;
  for (std::size_t i = 0; i < kBins; ++i) {
    const double m = (p[i] + q[i]) / 2;
    if (p[i] > 0) sum += 0.5 * p[i] * std::log(p[i] / m);
    if (q[i] > 0) sum += 0.5 * q[i] * std::log(q[i] / m);
  }
  return std::sqrt(std::max(sum, 0.0));
}

struct NamedPair {
  std::string name;  // "0 on node-7"
  const Gpu* gpu = nullptr;
  Histogram histogram{};
};

struct Pair {
  double distance = -1;
  const NamedPair* a = nullptr;
  const NamedPair* b = nullptr;  // null: the mean of all
};

class LoadBalancingEvaluator final : public EvaluatorOf<LoadBalancingState> {
 public:
  explicit LoadBalancingEvaluator(const LoadBalancingConfig& config) : config_(config) {}

  void on_snapshot(const NodeSnapshot& snapshot, Scope& scope) override {
    const std::uint64_t key = config_.per_node ? snapshot.node : 0;
    LoadBalancingState::Node& node = state.nodes[snapshot.node];
    if (!snapshot.name.empty()) node.name = snapshot.name;
    node.passed = std::max(node.passed, snapshot.next);
    std::vector<LoadBalancingState::Sample>& waiting = state.waiting[key];
    for (const Reading& reading : snapshot.of(Metric::gpu)) {
      waiting.push_back({snapshot.time, snapshot.node, std::string(reading.device), reading.value});
    }
    while (!waiting.empty()) {
      const auto oldest = std::min_element(
          waiting.begin(), waiting.end(),
          [](const auto& one, const auto& other) { return one.time < other.time; });
      const std::int64_t end = interval_end(oldest->time, config_.scan_interval);
      if (waiting.size() < kMostWaiting && passed_by_all(key) < end) return;
      count_until(waiting, end);
      std::int64_t& judged = state.judged.try_emplace(key, INT64_MIN).first->second;
      if (end <= judged) continue;  // of a node that was not waited for: it only counts
      judged = end;
      judge(key, end, scope);
    }
  }

 private:
  static constexpr std::size_t kMostWaiting = 1U << 18;
  static constexpr core::Duration kLag = std::chrono::minutes(2);

  /// All samples before this time have come.
  [[nodiscard]] std::int64_t passed_by_all(std::uint64_t key) const {
    if (key != 0) return state.nodes.at(key).passed;
    std::int64_t first = INT64_MIN;
    for (const auto& [number, node] : state.nodes) first = std::max(first, node.passed);
    std::int64_t last = first;
    const std::int64_t patience = std::max(2 * config_.scan_interval, kLag).count();
    for (const auto& [number, node] : state.nodes) {
      const bool waited_for = first == INT64_MAX || distance(first, node.passed) <= patience;
      if (waited_for) last = std::min(last, node.passed);
    }
    return last;
  }

  void count_until(std::vector<LoadBalancingState::Sample>& waiting, std::int64_t end) {
    const auto rest = std::stable_partition(
        waiting.begin(), waiting.end(),
        [&](const LoadBalancingState::Sample& one) { return one.time < end; });
    for (auto one = waiting.begin(); one != rest; ++one) {
      Gpu& gpu = state.nodes[one->node].gpus[one->device];
      if (gpu.samples == 0) gpu.first_time = one->time;
      if (gpu.samples > 0 && one->time > gpu.last_time) {
        gpu.nearest = std::min(gpu.nearest, distance(one->time, gpu.last_time));
      }
      gpu.last_time = std::max(gpu.last_time, one->time);
      gpu.max = std::max(gpu.max, one->value);
      ++gpu.counts[std::min(static_cast<std::size_t>(one->value / 2), kBins - 1)];
      ++gpu.samples;
    }
    waiting.erase(waiting.begin(), rest);
  }

  [[nodiscard]] std::size_t known(std::uint64_t key) const {
    std::size_t gpus = 0;
    for (const auto& [number, node] : state.nodes) {
      if (key == 0 || number == key) gpus += node.gpus.size();
    }
    return gpus;
  }

  /// GPUs with enough samples that have not fallen silent.
  [[nodiscard]] std::vector<NamedPair> candidates(std::uint64_t key, std::int64_t end) const {
    std::vector<NamedPair> out;
    for (const auto& [number, node] : state.nodes) {
      if (key != 0 && number != key) continue;
      for (const auto& [device, gpu] : node.gpus) {
        if (gpu.samples == 0 || distance(end, gpu.last_time) > gpu.patience() ||
            !config_.horizon.enough(gpu.samples, gpu.first_time, gpu.last_time)) {
          continue;
        }
        out.push_back({device + " on " + node.name, &gpu, shares(gpu)});
      }
    }
    std::sort(out.begin(), out.end(),
              [](const NamedPair& a, const NamedPair& b) { return a.name < b.name; });
    return out;
  }

  /// The farthest pair of each kind.
  static std::array<Pair, 2> farthest(const std::vector<NamedPair>& gpus) {
    std::array<Pair, 2> out;
    const auto offer = [&](const NamedPair& a, const NamedPair* b, const Histogram& other) {
      const bool unused = a.gpu->max == 0 || (b != nullptr && b->gpu->max == 0);
      Pair& best = out[unused ? kUnused : kImbalanced];
      const double apart = distance_of(a.histogram, other);
      if (apart > best.distance) best = {apart, &a, b};
    };
    if (gpus.size() <= kMostPairs) {
      for (std::size_t i = 0; i < gpus.size(); ++i) {
        for (std::size_t j = i + 1; j < gpus.size(); ++j) {
          offer(gpus[i], &gpus[j], gpus[j].histogram);
        }
      }
      return out;
    }
    Histogram mean{};
    for (const NamedPair& one : gpus) {
      for (std::size_t i = 0; i < kBins; ++i) {
        mean[i] += one.histogram[i] / static_cast<double>(gpus.size());
      }
    }
    for (const NamedPair& one : gpus) offer(one, nullptr, mean);
    return out;
  }

  void judge(std::uint64_t key, std::int64_t end, Scope& scope) {
    const std::vector<NamedPair> gpus = candidates(key, end);
    const std::array<Pair, 2> pairs = farthest(gpus);
    unsigned kinds = 0;
    for (const unsigned kind : {kUnused, kImbalanced}) {
      if (pairs[kind].distance > config_.threshold) kinds |= 1U << kind;
    }
    Verdict verdict =
        kinds == 0 ? kOk : Verdict{EvaluationOutcome::hit, static_cast<std::uint8_t>(kinds)};
    if (gpus.size() < 2) verdict = known(key) < 2 ? kNotApplicable : kInsufficient;
    Place place;
    place.step_clock = false;
    place.time = end;
    place.first_time = distance(end, config_.scan_interval.count());
    const std::string node = key == 0 ? std::string() : state.nodes[key].name;
    const auto labels = [&]() -> Labels {
      return node.empty() ? Labels{} : Labels{{"node", node}};
    };
    Subject subject;
    subject.name = node.empty() ? scope.job() : node;
    if (subject.name.empty()) subject.name = "the run";  // it has not said its job
    scope.judged(unit_number({node}), Scope::kNoWorker, verdict, place, subject, labels,
                 [&](const Subject& about, unsigned kind) {
                   return explain(about, pairs[kind], gpus.size(), kind);
                 });
  }

  static core::Value list_of(const Histogram& histogram) {
    core::ValueList out;
    for (const double share : histogram) out.emplace_back(share);
    return out;
  }

  [[nodiscard]] Finding explain(const Subject& subject, const Pair& pair, std::size_t gpus,
                                unsigned kind) const {
    const std::string other = pair.b == nullptr ? "the mean of all" : "GPU " + pair.b->name;
    Finding finding = Finding::that("distance", pair.distance);
    finding.is(">", "threshold", config_.threshold)
        .titled((kind == kUnused ? "one GPU of " : "load of the GPUs of ") + subject.name, Verb::is,
                kind == kUnused ? "not used" : "unequal")
        .says(kind == kUnused ? sentence("One of the {} GPUs of {} is idle while others work: GPU "
                                         "{} compared with {} (distance {}, limit {}).",
                                         gpus, subject.name, pair.a->name, other, pair.distance,
                                         config_.threshold)
                              : sentence("The {} GPUs of {} carry unequal loads: GPU {} compared "
                                         "with {} (distance {}, limit {}).",
                                         gpus, subject.name, pair.a->name, other, pair.distance,
                                         config_.threshold))
        .advises(
            "Give all workers the same amount of data, look for work that only one of them does, "
            "or distribute the model differently.")
        .with("gpu_a", pair.a->name)
        .with("gpu_b", other)
        .with("histogram_a", list_of(pair.a->histogram));
    if (pair.b != nullptr) finding.with("histogram_b", list_of(pair.b->histogram));
    finding.points = pair.a->gpu->samples;
    return finding;
  }

  const LoadBalancingConfig& config_;  // of the program, which outlives it
};

class LoadBalancingProgram final : public Program {
 public:
  LoadBalancingConfig config;
  [[nodiscard]] std::uint32_t inputs() const noexcept override { return input::kSnapshots; }
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<LoadBalancingEvaluator>(config);
  }
  [[nodiscard]] bool step_clock() const noexcept override { return false; }
};

struct LoadBalancing {
  static constexpr std::string_view kMetrics[] = {"hw.gpu.utilization"};

  static constexpr std::span<const std::string_view> kKinds = kBalanceKinds;
  static constexpr std::string_view kExtensions[] = {"scope", "patience_seconds"};

  static Defaults defaults(Preset) { return {.selects = false}; }

  static void read(config::Reader& in, LoadBalancingConfig& cfg, Preset) {
    std::string scope = "job";
    in.optional("threshold", cfg.threshold, config::between(0.0, kFarthest),
                "largest distance of two load histograms, 0 … 0.8326");
    read_patience(in, cfg.horizon, 1);
    read_scan_interval(in, cfg);
    in.optional("scope", scope, config::one_of({"job", "node"}),
                "compare all GPUs of the job, or those of each node");
    cfg.per_node = scope == "node";
  }
};

}  // namespace

RuleDescriptor load_balancing() {
  return {.name = "load_balancing",
          .original_name = "LoadBalancing",
          .title = "The GPUs of a job carry unequal loads.",
          .unit = "job",
          .needs = "system samples of at least two GPUs",
          .presets = "",
          .severity = core::Severity::warning,
          .metrics = LoadBalancing::kMetrics,
          .version = "2",
          .groups = group::kProfiler,
          .read = &read_rule<LoadBalancing, LoadBalancingProgram>};
}

}  // namespace tocsin::rules
