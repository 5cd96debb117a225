// Fires when updates do not survive the precision in which weights are stored, or a loss scaler leaves
// too many of them out.
//
// Reads   scalars ledger/precision/… of a worker (docs/ledger.md), which count elements of weights that are
//         stored in 16 bits, and updates that a loss scaler was asked for.
// Window  `updates` (64) updates that were looked at; `attempts` (100) updates that were asked for.
// Fires   swallowed  of the elements with a gradient more than `share` (0.9) had the same value after
//                    the update as before, summed over the window, and as many were not changed by any
//                    update of it: stochastic rounding, compensated sums and weights that are kept in
//                    32 bits elsewhere change them now and then
//         underflow  more than `zeros` (0.5) of a tensor's gradient are zeros and most of the rest are small multiples of
//                    2⁻²⁴, the smallest number of float16, at three words in a row (16, 32, 64 … looks), and the
//                    loss scale is 1 or less: it cannot lift them
//         skipped    a loss scaler left out more than `skipped` (0.2) of the updates of a window, the
//                    first `attempts` apart: in these it finds its scale
// Quiet   where no weight is stored in 16 bits; of rates that rise, or are less than half of what they
//         were (the hook does not look then); without a loss scaler.
// Source  ours; docs/rules/precision.md.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kPrecisionKinds[] = {"swallowed", "skipped", "underflow"};
constexpr std::string_view kUnderflowRoom = "underflow/";

struct Precision {
  static constexpr std::span<const std::string_view> kKinds = kPrecisionKinds;
  static constexpr bool kPerWorker = true;
  static constexpr std::span<const Sent> kSent{};
  enum Kind : unsigned { kSwallowed, kSkipped, kUnderflow };
  static constexpr double kWords = 3;  // in a row
  static constexpr double kFloor = 1;  // of the loss scale: it lifts nothing
  static constexpr std::size_t kMostTensors = 32;

  struct Config {
    double share = 0.9;
    std::uint32_t updates = 64;
    double skipped = 0.2;
    std::uint32_t attempts = 100;
    double zeros = 0.5;
  };
  /// Elements of the updates since the last window.
  struct Stored {
    std::uint64_t updates = 0;
    std::int64_t since = 0;
    double elements = 0;
    double swallowed = 0;
    template <typename A>
    friend void io(A& a, Stored& s) {
      io_all(a, s.updates, s.since, s.elements, s.swallowed);
    }
  };
  struct Scaled {
    bool settled = false;  // the first attempts are over
    std::int64_t since = 0;
    double attempts = 0;
    double left_out = 0;
    template <typename A>
    friend void io(A& a, Scaled& s) {
      io_all(a, s.settled, s.since, s.attempts, s.left_out);
    }
  };
  /// A tensor whose gradient float16 cannot hold.
  struct Lost {
    double zeros = 0;  // share, at the newest word
    double words = 0;  // in a row
    template <typename A>
    friend void io(A& a, Lost& l) {
      io_all(a, l.zeros, l.words);
    }
  };
  struct State {
    std::map<std::string, Lost> lost;
    Stored stored;
    Scaled scaled;
    double weights_judged = 0;  // windows
    double scaler_judged = 0;
    AnswersSoFar answers;
    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.lost, s.stored, s.scaled, s.weights_judged, s.scaler_judged, s.answers);
    }
  };
  /// What a step says; negative: nothing.
  struct Said {
    double elements = -1;
    double swallowed = -1;
    double window = -1;
    double unmoved = -1;
    double scaled = -1;
    double left_out = -1;
    double scale = -1;
    double tensors = -1;
    double beside = -1;
    std::vector<std::pair<std::string, double>> underflow;
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes}; }
  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("share", cfg.share, config::between(0.0, 1.0),
                "largest share of elements with a gradient that updates leave unchanged");
    in.optional("updates", cfg.updates, config::at_least(1U), "least number of updates to judge");
    in.optional("skipped", cfg.skipped, config::between(0.0, 1.0),
                "largest share of updates that the loss scaler may skip");
    in.optional("attempts", cfg.attempts, config::at_least(1U),
                "updates of the scaler per judgement; the first ones are not judged");
    in.optional("zeros", cfg.zeros, config::between(0.5, 1.0),
                "a gradient underflows if this share of it is zeros");
  }
  static std::vector<Need> needs(const Config&) { return {{"ledger"}}; }
  static void adjust(const Config&, Program& program) {
    if (!program.selection.empty()) return;
    std::string error;
    program.selection.add_regex("^ledger/precision/", error);
  }

  static Said said(const StepSet& set, const Scope& scope) {
    constexpr std::string_view kRoom = "ledger/precision/";
    Said out;
    for (const StepRow& row : set.rows) {
      const Name* name = row.scalar ? scope.find(row.name()) : nullptr;
      if (name == nullptr || !name->text.starts_with(kRoom) || !(row.row.sum >= 0)) continue;
      const std::string_view field = std::string_view(name->text).substr(kRoom.size());
      if (field == "elements") out.elements = row.row.sum;
      if (field == "swallowed") out.swallowed = row.row.sum;
      if (field == "window") out.window = row.row.sum;
      if (field == "unmoved") out.unmoved = row.row.sum;
      if (field == "scaled") out.scaled = row.row.sum;
      if (field == "left_out") out.left_out = row.row.sum;
      if (field == "scale") out.scale = row.row.sum;
      if (field == "scale_tensors") out.tensors = row.row.sum;
      if (field == "beside") out.beside = row.row.sum;
      if (field.starts_with(kUnderflowRoom)) {
        out.underflow.emplace_back(field.substr(kUnderflowRoom.size()), row.row.sum);
      }
    }
    return out;
  }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    const Said now = said(set, report.scope());
    if (now.elements >= 0 && now.swallowed >= 0) {
      Stored& stored = state.stored;
      if (stored.updates++ == 0) stored.since = set.step;
      stored.elements += now.elements;
      stored.swallowed += now.swallowed;
      if (state.weights_judged == 0) note(state, "weights", kInsufficient, cfg.updates);
    }
    if (now.window >= 0 && now.unmoved >= 0) judge_stored(cfg, state, now, report);
    if (now.scaled >= 0) judge_scaled(cfg, state, now, set, report);
    if (now.scale >= 0) judge_underflow(cfg, state, now, report);
  }

  static void judge_underflow(const Config& cfg, State& state, const Said& now, SetReport& report) {
    for (const auto& [name, zeros] : now.underflow) {
      const auto [at, fresh] = state.lost.try_emplace(name);
      if (fresh && state.lost.size() > kMostTensors) {
        state.lost.erase(at);
        continue;
      }
      at->second.zeros = zeros;
      at->second.words = zeros > cfg.zeros && now.scale <= kFloor ? at->second.words + 1 : 0;
    }
    double lost = 0;
    for (const auto& [name, one] : state.lost) {
      const bool is = one.words >= kWords;
      lost += is ? 1 : 0;
      report.evaluated({{"metric", name}}, name, is ? hit(kUnderflow) : kOk,
                       [&, &name = name, &one = one](const Subject& subject, unsigned) {
                         return explain(cfg, name, one, now, subject);
                       });
    }
    if (state.lost.empty()) {
      report.evaluated({{"metric", "gradients"}}, "gradients",
                       now.tensors > 0 ? kOk : kInsufficient,
                       [](const Subject&, unsigned) { return Finding{}; });
    }
    state.answers.note("gradients",
                       lost > 0          ? hit(kUnderflow)
                       : now.tensors > 0 ? kOk
                                         : kInsufficient,
                       {{"loss_scale", now.scale}, {"tensors", now.tensors}, {"underflow", lost}},
                       kPrecisionKinds);
  }

  /// What is known of the present window, of `needed` updates.
  static void note(State& state, std::string_view subject, Verdict verdict, double needed) {
    const bool weights = subject == "weights";
    const Stored& stored = state.stored;
    const Scaled& scaled = state.scaled;
    const double updates = weights ? static_cast<double>(stored.updates) : scaled.attempts;
    const double whole = weights ? stored.elements : scaled.attempts;
    const double lost = weights ? stored.swallowed : scaled.left_out;
    state.answers.note(subject, verdict,
                       {{weights ? "swallowed" : "left_out", whole > 0 ? lost / whole : 0},
                        {weights ? "updates_seen" : "updates_scaled", updates},
                        {weights ? "needs_updates_seen" : "needs_updates_scaled",
                         std::max(0.0, needed - updates)}},
                       kPrecisionKinds);
  }

  static void judge_stored(const Config& cfg, State& state, const Said& now, SetReport& report) {
    Stored& stored = state.stored;
    const bool enough = stored.updates >= cfg.updates && stored.elements > 0 && now.window > 0;
    const bool lost = enough && stored.swallowed > cfg.share * stored.elements &&
                      now.unmoved > cfg.share * now.window;
    const Verdict verdict = !enough ? kInsufficient : lost ? hit(kSwallowed) : kOk;
    report.evaluated(
        {{"metric", "weights"}}, "weights", verdict,
        [&](const Subject& subject, unsigned) { return explain(cfg, stored, now, subject); });
    if (!enough) return;
    ++state.weights_judged;
    note(state, "weights", verdict, cfg.updates);
    stored = {};
  }

  static void judge_scaled(const Config& cfg, State& state, const Said& now, const StepSet& set,
                           SetReport& report) {
    Scaled& scaled = state.scaled;
    if (scaled.attempts == 0) scaled.since = set.step;
    scaled.attempts += now.scaled;
    // An optimizer that unscales by itself is called, and leaves the update out in its kernel.
    scaled.left_out += std::max(now.left_out, 0.0) + (set.skipped ? 1 : 0);
    if (state.scaler_judged == 0) {
      note(state, "loss_scale", kInsufficient, cfg.attempts * (scaled.settled ? 1 : 2));
    }
    if (scaled.attempts < cfg.attempts) return;
    if (scaled.settled) {
      const bool many = scaled.left_out > cfg.skipped * scaled.attempts;
      ++state.scaler_judged;
      note(state, "loss_scale", many ? hit(kSkipped) : kOk, cfg.attempts);
      report.evaluated(
          {{"metric", "loss_scale"}}, "loss_scale", many ? hit(kSkipped) : kOk,
          [&](const Subject& subject, unsigned) { return explain(cfg, scaled, subject); });
    }
    scaled = {};
    scaled.settled = true;
  }

  static Finding explain(const Config& cfg, const Stored& stored, const Said& now,
                         const Subject& subject) {
    return Finding::that("swallowed", stored.swallowed / stored.elements)
        .is(">", "share", cfg.share)
        .titled("updates", Verb::are, "lost to the precision of the weights")
        .says(sentence("Rounding erases updates: {} % of the elements with a gradient had the same "
                       "value after the update as before, over {} updates up to {}. {} % were "
                       "never changed. The weights are stored in 16 bits.",
                       100 * stored.swallowed / stored.elements, stored.updates, subject.place(),
                       100 * now.unmoved / now.window))
        .advises(
            "Keep the weights in float32 and compute in 16 bits (autocast), keep a float32 copy in "
            "the optimizer, or round stochastically. A larger learning rate only helps in part.")
        .since(stored.since, stored.updates)
        .with("elements", stored.elements)
        .with("unmoved", now.unmoved / now.window);
  }

  static Finding explain(const Config& cfg, const std::string& name, const Lost& lost,
                         const Said& now, const Subject& subject) {
    return Finding::that("zeros", lost.zeros)
        .is(">", "limit", cfg.zeros)
        .titled(name, Verb::has, "gradients that float16 cannot hold")
        .says(sentence("{} % of the gradient of {} are zeros up to {}. Most of the rest are small "
                       "multiples of 2^-24, the smallest number of float16. The loss scale is {}, "
                       "too small to help. {} of {} tensors have no zeros.",
                       100 * lost.zeros, name, subject.place(), now.scale,
                       std::max(now.beside, 0.0), now.tensors))
        .advises(
            "Scale the loss (GradScaler), or use bfloat16. If a scaler has fallen to 1, find what "
            "overflows float16 at any scale, and compute that in float32.")
        .with("loss_scale", now.scale);
  }

  static Finding explain(const Config& cfg, const Scaled& scaled, const Subject& subject) {
    return Finding::that("left_out", scaled.left_out / scaled.attempts)
        .is(">", "skipped", cfg.skipped)
        .titled("the loss scaler", Verb::is, "skipping updates")
        .says(sentence("The loss scaler skipped {} of the {} updates up to {}, because gradients "
                       "were not finite. A good scale skips about one in a thousand.",
                       scaled.left_out, scaled.attempts, subject.place()))
        .advises(
            "Find values that overflow float16 at any scale (logits, attention scores, a division "
            "by a small number). Compute them in float32, or use bfloat16.")
        .since(scaled.since, static_cast<std::uint64_t>(scaled.attempts));
  }
};

}  // namespace

RuleDescriptor precision() {
  return {
      .name = "precision",
      .original_name = "Precision",
      .title = "Rounding erases updates, gradients underflow, or the loss scaler skips updates.",
      .unit = "worker",
      .needs = "collection ledger: weights stored in 16 bits, or a loss scaler",
      .presets = "",
      .severity = core::Severity::warning,
      .version = "2",
      .groups = group::kDefault | group::kPyTorch,
      .read = &read_step_set_rule<Precision>};
}

}  // namespace tocsin::rules
