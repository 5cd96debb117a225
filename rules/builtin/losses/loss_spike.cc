// Fires when the training loss jumps out of its usual range.
//
// Reads   scalars with role loss in train and global, at every step.
// Window  the latest 200 values (window) of each series that belong to no spike, at least 30.
// Fires   z > z_threshold (8) for 3 steps in a row (points) opens a spike, z = (median of the latest
//         3 values − median of the window) / (1.4826 · median absolute deviation):
//           transient  z has come back within 20 steps (recovery_steps); severity info
//           spike      it has not
// Quiet   until 30 values are known, for NaN, for other sets than the training set, and for metrics
//         that should grow. A deviation counts as 1 % of the median at least.
// Source  our own; docs/rules/loss_spike.md.

#include <algorithm>
#include <array>
#include <cmath>

#include "rules/builtin/shared/metric_name.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kSpikeKinds[] = {"spike", "transient"};
struct LossSpike {
  enum Kind : unsigned { kSpike, kTransient };

  static constexpr std::span<const std::string_view> kKinds = kSpikeKinds;
  static constexpr std::uint32_t kMost = 200;
  static constexpr std::uint32_t kLeast = 30;

  struct Config {
    double z_threshold = 8;
    std::uint32_t window = kMost;
    std::uint32_t points = 3;
    std::int64_t recovery_steps = 20;
    std::string train_set;
  };
  struct State {
    std::array<double, kMost> window{};  // what belongs to no spike
    std::array<double, kMost> sorted{};  // the same, ascending
    std::uint32_t known = 0;             // values that it has held
    Gap<4> gap{};
    std::array<double, 3> latest{};  // newest last
    std::uint32_t seen = 0;
    std::uint32_t row = 0;  // steps in a row above the limit
    bool open = false;
    Gap<7> gap_after_open{};
    std::int64_t since = 0;  // where the row began
    double z = 0;
    double median = 0;
    double deviation = 0;
    double value = 0;
    double highest = 0;        // since the row began
    std::uint32_t lasted = 0;  // steps of the row, also when it is over
    std::uint32_t level = 0;   // values since a spike was no short one
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes, .roles = {core::Role::loss}}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("z_threshold", cfg.z_threshold, config::greater_than(0.0),
                "largest robust deviations above the median");
    in.optional("window", cfg.window, config::between(std::uint32_t{kLeast}, std::uint32_t{kMost}),
                "number of earlier values to compare with");
    in.optional("points", cfg.points, config::at_least(std::uint32_t{1}),
                "steps in a row above the limit that make a spike");
    in.optional("recovery_steps", cfg.recovery_steps, config::at_least(std::int64_t{1}),
                "a spike that ends within this many steps is transient");
    read_train_set(in, cfg.train_set);
  }

  static std::vector<Need> needs(const Config&) { return {{"losses"}}; }

  static void on_step(const Config& cfg, SeriesMemory& memory, const StepPoint& point,
                      SeriesReport& report) {
    for (const ReadSeries& one : read_series(point, cfg.train_set)) {
      if (!one.trains || one.grows) continue;
      const SeriesKey key{one.value->name, static_cast<std::uint8_t>(point.mode)};
      State* state = memory.of<State>(key);
      if (state == nullptr) continue;
      const Verdict verdict = judge(cfg, *state, point.step, one.value->value);
      const auto why = [&](const Subject& subject, unsigned kind) {
        return explain(cfg, *state, subject, kind);
      };
      report.evaluated(key, one.value->text, verdict, point, why);
    }
  }

  static void on_pass(const Config&, SeriesMemory&, const StepPoint&, SeriesReport&) {}

  static Verdict judge(const Config& cfg, State& state, std::int64_t step, double loss) {
    if (std::isnan(loss)) return kInsufficient;
    state.value = loss;
    state.latest = {state.latest[1], state.latest[2], loss};
    ++state.seen;
    if (state.known < kLeast) {
      remember(cfg, state, loss);
      return kInsufficient;
    }
    measure(cfg, state);
    if (!(state.z > cfg.z_threshold)) return calm(cfg, state, step, loss);
    if (state.row == 0) {
      state.since = step;
      state.highest = loss;
    }
    state.lasted = ++state.row;
    state.highest = std::max(state.highest, loss);
    state.open = state.open || state.row >= cfg.points;
    const bool lasts = state.open && distance(step, state.since) >= cfg.recovery_steps;
    // A level that stays for a whole window is the usual one from then on.
    if (lasts && ++state.level >= cfg.window) {
      state = {};
      return kInsufficient;
    }
    return lasts ? hit(kSpike) : kOk;
  }

  static Verdict calm(const Config& cfg, State& state, std::int64_t step, double loss) {
    const bool ended = state.open && distance(step, state.since) < cfg.recovery_steps;
    state.open = false;
    state.row = 0;
    state.level = 0;
    remember(cfg, state, loss);
    return ended ? hit(kTransient) : kOk;
  }

  static void remember(const Config& cfg, State& state, double loss) {
    if (!std::isfinite(loss)) return;
    double* const begin = state.sorted.data();
    double* end = begin + std::min(state.known, cfg.window);
    double& place = state.window[state.known % cfg.window];
    if (state.known >= cfg.window) {
      double* const oldest = std::lower_bound(begin, end, place);
      end = std::copy(oldest + 1, end, oldest);
    }
    place = loss;
    double* const to = std::upper_bound(begin, end, loss);
    std::copy_backward(to, end, end + 1);
    *to = loss;
    ++state.known;
  }

  // Of the distances of sorted values from `center`, the smallest half and one more, nearest first.
  static double median_distance(const double* begin, std::uint32_t size, double center) {
    const double* const end = begin + size;
    const double* above = std::lower_bound(begin, end, center);
    const double* below = above;  // behind the next one
    double last = 0;
    double before = 0;
    for (std::uint32_t i = 0; i <= size / 2; ++i) {
      before = last;
      const bool up = below == begin || (above != end && *above - center < center - below[-1]);
      last = std::fabs((up ? *above++ : *--below) - center);
    }
    return size % 2 == 1 ? last : (last + before) / 2;
  }

  static void measure(const Config& cfg, State& state) {
    const double* const begin = state.sorted.data();
    const std::uint32_t size = std::min(state.known, cfg.window);
    const double* const middle = begin + size / 2;
    state.median = size % 2 == 1 ? *middle : (middle[0] + middle[-1]) / 2;
    const double floor = std::max(0.01 * std::fabs(state.median), 1e-12);
    state.deviation = std::max(1.4826 * median_distance(begin, size, state.median), floor);
    std::array<double, 3> smooth = state.latest;
    std::sort(smooth.begin(), smooth.end());
    state.z = (smooth[1] - state.median) / state.deviation;
  }

  static Finding explain(const Config& cfg, const State& state, const Subject& subject,
                         unsigned kind) {
    const std::string where = sentence("{} ({})", subject.name, core::to_string(subject.mode));
    Finding finding = Finding::that(
        "z", kind == kTransient ? (state.highest - state.median) / state.deviation : state.z);
    finding.is(">", "z_threshold", cfg.z_threshold)
        .since(state.since, state.lasted)
        .with("median", state.median)
        .with("deviation", state.deviation)
        .with("highest", state.highest)
        .with("value", state.value);
    if (kind == kTransient) {
      finding.titled(where, Verb::has, "jumped and come back")
          .says(sentence(
              "{} jumped to {} at step {}, far above its usual {}, and came back by step {}.",
              where, state.highest, state.since, state.median, subject.step))
          .advises("Look at the batches of those steps. Gradient clipping keeps such jumps short.")
          .severity = core::Severity::info;
      return finding;
    }
    return finding.titled(where, Verb::has, "jumped")
        .says(sentence(
            "{} jumped at step {} and has not come back: {} at step {}, usual before: {} ± {}.",
            where, state.since, state.value, subject.step, state.median, state.deviation))
        .advises(
            "Resume from a checkpoint before the jump, lower the learning rate or clip gradients, "
            "and skip the batches of those steps.");
  }
};

}  // namespace

RuleDescriptor loss_spike() {
  return {.name = "loss_spike",
          .original_name = "LossSpike",
          .title = "The training loss jumps out of its usual range.",
          .unit = "series",
          .needs = "collection losses, at every step",
          .presets = "",
          .severity = core::Severity::warning,
          .groups = group::kPyTorch,
          .read = &read_series_rule<LossSpike>};
}

}  // namespace tocsin::rules
