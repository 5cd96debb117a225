// Fires when a loss or metric leaves the range that earlier runs of the same family had at this point of
// training.
//
// Reads   scalars with role loss or metric: in train and global their means over pieces of training
//         (each of the first 16 steps, then eight pieces per doubling), in eval each evaluation pass, placed
//         by the train step before it.
// Window  the newest 32 runs of the family (family: runs with the same label recipe) that ended as
//         completed before this one began.
// Fires   at a piece or pass that lies beyond median ± limit of at least 8 runs (min_runs), for 3 in a row
//         (points). limit = z_threshold (4), widened as Student's t for that few runs, times
//         max(1.4826 · median absolute deviation, quartile distance / 1.349, 1 % of the median) times √(1 + 1/runs):
//           worse    the loss is higher, the growing metric lower
//           outside  a metric of which nothing says which way it should go, on either side
//           better   (better: true) the other side
// Drift   where all newer runs lie on one side of all older ones, min_runs or more of each, the older are left out.
// Quiet   until min_runs runs are known; for values that are no finite numbers.
// Source  our own; docs/rules/family_baseline.md.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/identity.h"
#include "rules/builtin/losses/family_curves.h"
#include "rules/builtin/shared/metric_name.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/evaluator.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kFamilyKinds[] = {"worse", "better", "outside"};
enum FamilyKind : unsigned { kWorse, kBetter, kOutside };

constexpr std::size_t kMostSeries = 64;  // of a run
constexpr std::size_t kMostRuns = 32;    // of a family
constexpr std::uint32_t kFormat = 1;     // of what is said to other partitions

struct FamilyConfig {
  std::vector<std::string> family{"recipe"};
  std::uint32_t min_runs = 8;
  double z_threshold = 4;
  std::uint32_t points = 3;
  bool better = false;
};

/// A metric of this run.
struct Track {
  std::uint32_t piece = 0;  // that goes on
  std::uint32_t row = 0;    // of pieces outside
  double sum = 0;
  std::uint64_t count = 0;
  std::int64_t from = 0;   // first step of the piece
  std::int64_t since = 0;  // of the row
};

/// Of a run its own curves; of a family, which no run is, those of its runs.
struct FamilyState {
  std::map<family::Key, Track> tracks;
  family::Curves curves;
  std::map<std::string, family::Past> past;  // by run and attempt
  std::vector<std::string> withdrawn;        // made room, and are told elsewhere
  std::string self;                          // once the run is over
  std::int64_t began = 0;                    // first measurement; 0: nothing yet
  std::int64_t ended = 0;
  std::uint64_t judged = 0;
  std::uint64_t drifted = 0;   // of those against newer runs alone
  std::uint64_t left_out = 0;  // values of metrics beyond the most

  template <typename A>
  friend void io(A& a, FamilyState& s) {
    io_all(a, s.tracks, s.curves, s.past, s.withdrawn, s.self, s.began, s.ended, s.judged,
           s.drifted, s.left_out);
  }
};

class FamilyEvaluator final : public EvaluatorOf<FamilyState> {
 public:
  explicit FamilyEvaluator(const FamilyConfig& config) : config_(config) {}

  void on_values(const StepPoint& point, bool pass, const Place& place, Scope& scope) override {
    // A pass that is evaluated is one point; its single steps are none.
    if (pass != (point.mode == core::Mode::eval)) return;
    if (state.began == 0) state.began = point.time;
    for (const SeriesValue& value : point.values) {
      const family::Key key{value.name, static_cast<std::uint32_t>(point.mode)};
      auto found = state.tracks.find(key);
      if (found == state.tracks.end()) {
        if (state.tracks.size() >= kMostSeries) {
          ++state.left_out;
          scope.counted(EvaluationOutcome::not_applicable);
          continue;
        }
        found = state.tracks.try_emplace(key).first;
        found->second.piece = family::piece_of(at(point));
      }
      take(key, found->second, value, point, place, scope);
    }
  }
  void on_end(Scope& scope) override {
    state.self = scope.run();
    state.ended = scope.times().ended != 0 ? scope.times().ended : scope.times().newest;
    const std::size_t known = earlier(scope);
    if (relatives(scope) == nullptr) {
      return scope.unjudged("the run lacks a label of its family: " + listed(config_.family));
    }
    if (state.judged == 0) {
      scope.unjudged(
          sentence("only {} earlier runs of its family completed before this one began; min_runs = "
                   "{} are needed",
                   known, config_.min_runs));
    }
    core::ValueMap told{{"earlier_runs", std::uint64_t{known}}, {"judged", state.judged}};
    told.emplace_back("against_newer_runs_alone", state.drifted);
    if (state.left_out > 0) told.emplace_back("values_left_out", state.left_out);
    scope.summary(std::move(told));
  }

  // Of a run that is over all it had, as one record; of a family who made room.
  void publish(Tell say) override {
    if (!state.self.empty() && !state.curves.empty()) {
      family::Past mine{state.ended, state.curves};
      std::string bytes;
      Writer out(bytes);
      std::uint32_t format = kFormat;
      io(out, format);
      io(out, mine);
      say(state.self, std::move(bytes));
    }
    for (std::string& gone : state.withdrawn) say(std::move(gone), std::nullopt);
    state.withdrawn.clear();
  }
  // Who withdraws one knows newer ones, and we shall; so nothing is forgotten before.
  [[nodiscard]] bool knows(std::string_view key, bool there) const override {
    return !there || state.past.contains(std::string(key));
  }
  void learn(std::string_view key, std::optional<std::string_view> value) override {
    if (!value) return;
    Loader in(*value);
    std::uint32_t format = 0;
    family::Past past;
    io(in, format);
    if (format == kFormat) io(in, past);
    if (format != kFormat || !in.ok()) return;
    state.past[std::string(key)] = std::move(past);
    while (state.past.size() > kMostRuns) {
      const auto oldest = std::min_element(
          state.past.begin(), state.past.end(),
          [](const auto& a, const auto& b) { return a.second.ended < b.second.ended; });
      state.withdrawn.push_back(oldest->first);
      state.past.erase(oldest);
    }
  }

 private:
  static std::string listed(const std::vector<std::string>& names) {
    std::string out;
    for (const std::string& name : names) {
      if (!out.empty()) out += ", ";
      out += name == "job" ? "the job's name" : "label " + name;
    }
    return out;
  }
  static std::int64_t at(const StepPoint& point) {
    return point.mode == core::Mode::eval ? point.train_step : point.step;
  }

  void take(const family::Key& key, Track& track, const SeriesValue& value, const StepPoint& point,
            const Place& place, Scope& scope) {
    const std::uint32_t piece = family::piece_of(at(point));
    const bool evaluates = point.mode == core::Mode::eval;
    if (piece > track.piece) {
      if (!evaluates) close(key, track, value, point, place, scope);
      track.piece = piece;
      track.sum = 0;
      track.count = 0;
    }
    if (track.count == 0) track.from = point.step;
    if (std::isfinite(value.value)) {
      track.sum += value.value;
      ++track.count;
    }
    if (!evaluates) return;
    if (track.count > 0)
      state.curves[key][track.piece] = track.sum / static_cast<double>(track.count);
    judge(key, track, value, value.value, point.step, point, place, scope);
  }

  // The piece before the point is over.
  void close(const family::Key& key, Track& track, const SeriesValue& value, const StepPoint& point,
             const Place& place, Scope& scope) {
    const double mean = track.sum / static_cast<double>(track.count);  // NaN: it had no number
    if (std::isfinite(mean)) state.curves[key][track.piece] = mean;
    judge(key, track, value, mean, track.from, point, place, scope);
  }

  const FamilyEvaluator* relatives(const Scope& scope) const {
    return dynamic_cast<const FamilyEvaluator*>(scope.other());
  }
  [[nodiscard]] bool before(const family::Past& past) const {
    return past.ended != 0 && past.ended < state.began;
  }
  [[nodiscard]] std::size_t earlier(const Scope& scope) const {
    const FamilyEvaluator* const others = relatives(scope);
    if (others == nullptr) return 0;
    return static_cast<std::size_t>(
        std::count_if(others->state.past.begin(), others->state.past.end(),
                      [&](const auto& one) { return before(one.second); }));
  }

  [[nodiscard]] std::optional<family::Range> range(const family::Key& key, std::uint32_t piece,
                                                   const Scope& scope) const {
    const FamilyEvaluator* const others = relatives(scope);
    if (others == nullptr) return std::nullopt;
    std::vector<std::pair<std::int64_t, double>> known;
    for (const auto& [run, past] : others->state.past) {
      const auto curve = past.curves.find(key);
      if (!before(past) || curve == past.curves.end()) continue;
      const auto value = curve->second.find(piece);
      if (value != curve->second.end()) known.emplace_back(past.ended, value->second);
    }
    std::sort(known.begin(), known.end());
    std::vector<double> values;
    values.reserve(known.size());
    for (const auto& [ended, value] : known) values.push_back(value);
    return family::range_of(values, config_.min_runs, config_.z_threshold);
  }

  // Which way is wrong: 1 up, −1 down, 0 nobody says.
  static int wrong_way(const SeriesValue& value) {
    if (value.direction) return *value.direction == core::Direction::max ? -1 : 1;
    const MetricName name = metric_name(value.text);
    if (name.grows) return -1;
    return value.role == core::Role::loss || name.counts_samples ? 1 : 0;
  }

  void judge(const family::Key& key, Track& track, const SeriesValue& value, double mean,
             std::int64_t from, const StepPoint& point, const Place& place, Scope& scope) {
    const std::uint64_t unit =
        core::name_hash(value.text) ^ (0x9E3779B97F4A7C15 * (key.second + 1));
    const auto known = std::isfinite(mean) ? range(key, track.piece, scope) : std::nullopt;
    Verdict verdict = kInsufficient;
    if (known) {
      ++state.judged;
      if (known->left_out > 0) ++state.drifted;
      verdict = verdict_of(track, *known, mean - known->median, wrong_way(value), from);
    }
    if (scope.quiet(unit, verdict)) return;
    Subject subject;
    subject.name = value.text;
    subject.mode = point.mode;
    subject.step = point.step;
    Place here = place;
    here.mode = point.mode;
    here.step = point.step;
    here.global_step = point.global_step;
    here.time = point.time;
    const auto labels = [&]() -> Labels {
      return {{"metric", subject.name}, {"mode", std::string(core::to_string(subject.mode))}};
    };
    scope.judged(unit, Scope::kNoWorker, verdict, here, subject, labels,
                 [&](const Subject& about, unsigned kind) {
                   return explain(track, *known, mean, about, kind);
                 });
  }

  Verdict verdict_of(Track& track, const family::Range& range, double away, int wrong,
                     std::int64_t from) const {
    const bool outside = std::fabs(away) > range.limit;
    const bool better = wrong * away < 0;
    if (!outside || (better && !config_.better)) {
      track.row = 0;
      return kOk;
    }
    if (track.row++ == 0) track.since = from;
    if (track.row < config_.points) return kOk;
    return hit(wrong == 0 ? kOutside : better ? kBetter : kWorse);
  }

  static Finding explain(const Track& track, const family::Range& range, double mean,
                         const Subject& subject, unsigned kind) {
    const bool above = mean > range.median;
    const double limit = above ? range.median + range.limit : range.median - range.limit;
    Finding out = Finding::that("value", mean)
                      .is(above ? ">" : "<", "limit", limit)
                      .since(track.since, track.row)
                      .with("median", range.median)
                      .with("spread", range.spread)
                      .with("earlier_runs", std::uint64_t{range.runs});
    if (range.left_out > 0) out.with("older_runs_left_out", std::uint64_t{range.left_out});
    out.titled(subject.name, Verb::is,
               kind == kBetter ? "better than earlier runs" : "worse than earlier runs")
        .says(
            sentence("{} ({}) is {} at step {}; {} earlier runs of this family had {} ± {} there.",
                     subject.name, core::to_string(subject.mode), mean, subject.step, range.runs,
                     range.median, range.spread));
    if (range.left_out > 0) {
      out.adds(sentence("{} older runs do not count: the newer ones differ from all of them.",
                        range.left_out));
    }
    if (kind == kBetter) {
      return out.advises(
          "Check whether the data or the measurement has changed. A result that is too good is "
          "often a leak.");
    }
    return out.advises(
        "Compare data, configuration and code of this run with those of the earlier ones. If the "
        "change is intended, later runs count it as usual once enough of them have ended.");
  }

  const FamilyConfig& config_;  // of the program, which outlives it
};

class FamilyProgram final : public Program {
 public:
  FamilyConfig config;
  [[nodiscard]] std::uint32_t inputs() const noexcept override { return input::kValues; }
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<FamilyEvaluator>(config);
  }
  [[nodiscard]] TensorUse tensor_use() const noexcept override { return TensorUse::none; }
  [[nodiscard]] std::span<const std::string> family() const noexcept override {
    return config.family;
  }
};

struct FamilyBaseline {
  static constexpr std::span<const std::string_view> kKinds = kFamilyKinds;

  static Defaults defaults(Preset) {
    return {.modes = static_cast<std::uint8_t>(kTrainModes | mode_bit(core::Mode::eval)),
            .roles = {core::Role::loss, core::Role::metric}};
  }
  static std::vector<Need> needs(const FamilyConfig&) { return {{"losses"}, {"metrics"}}; }

  static void read(config::Reader& in, FamilyConfig& cfg, Preset) {
    in.optional("family", cfg.family,
                "what runs of a family have in common: labels of the run, or `job`, its name");
    in.optional("min_runs", cfg.min_runs,
                config::between(std::uint32_t{3}, std::uint32_t{kMostRuns}),
                "least number of earlier runs to judge a run");
    in.optional("z_threshold", cfg.z_threshold, config::between(1.0, 10.0),
                "how far a healthy run may be off, in standard deviations over many runs");
    in.optional("points", cfg.points, config::at_least(std::uint32_t{1}),
                "pieces of training, or evaluation passes, in a row that must be off");
    in.optional("better", cfg.better, "also report results that are better than ever");
    if (in.describing()) return;
    if (cfg.family.empty() ||
        std::find(cfg.family.begin(), cfg.family.end(), "") != cfg.family.end()) {
      in.error("family", "expected at least one name: job, or a label of the run");
    }
  }
};

}  // namespace

RuleDescriptor family_baseline() {
  return {.name = "family_baseline",
          .original_name = "FamilyBaseline",
          .title = "A loss or metric leaves the range that earlier runs of the same family had.",
          .unit = "series",
          .needs = "collections losses and metrics; earlier runs of the family that completed",
          .presets = "",
          .severity = core::Severity::warning,
          .version = "2",
          .groups = group::kPyTorch | group::kXGBoost,
          .read = &read_rule<FamilyBaseline, FamilyProgram>};
}

}  // namespace tocsin::rules
