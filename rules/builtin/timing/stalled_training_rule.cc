// Fires when nothing has been heard of a training for too long.
//
// Reads   when the newest summary, scalar or step-end frame of the run (or worker) reached the
//         engine.
// Window  now − that time, or since the run became known. Judged by the engine's ticks, and only
//         when everything that exists has been read; in a replay the records' times are the clock.
//         A loop may promise when it will be heard of again (hook.report_progress): until then, and
//         `grace` on top, nothing is too long; afterwards so long a silence is, if less than threshold.
// Fires   silence >= threshold, or as long as was promised and grace; once per silence.
// Quiet   for runs that announced their end, and while a promise holds. Heartbeats are no progress: they go on when training
//         hangs.
// Source  Amazon SageMaker Debugger, StalledTrainingRule; docs/rules/stalled_training_rule.md.

#include "rules/contract/clock_rule.h"
#include "rules/contract/quantity.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {
namespace {

class StalledProgram final : public ClockProgram {
 public:
  void read(config::Reader& in, Preset) {
    std::int64_t seconds = 1800;
    std::string scope = "run";
    bool stop = false;
    std::string prefix;
    in.optional("threshold", seconds, config::between(std::int64_t{1}, std::int64_t{1} << 32),
                "seconds without progress");
    in.optional("stop_training_on_fire", stop,
                "stop the training: the same as actions: [stop] (needs a receiver of that name)");
    in.optional("training_job_name_prefix", prefix,
                "accepted for old configurations; the run is known exactly");
    in.optional(
        "scope", scope, config::one_of({"run", "worker"}),
        "run = no worker makes progress; worker = one is silent while others make progress");
    std::int64_t more = 100;
    in.optional("grace", more, config::between(std::int64_t{0}, std::int64_t{1} << 32),
                "seconds beyond a promise of the loop (hook.report_progress)");
    if (stop) actions.emplace_back("stop");
    threshold = std::chrono::seconds(seconds);
    grace = std::chrono::seconds(more);
    per_worker = scope == "worker";
  }

  [[nodiscard]] Finding explain(const Silence& silence, const Subject& subject) const override {
    const double seconds = static_cast<double>(distance(silence.now, silence.last_message)) / 1e9;
    const double limit = static_cast<double>(silence.limit) / 1e9;
    const std::string promised =
        silence.promised == 0
            ? ""
            : sentence("; it promised its next step in {}",
                       duration_text(static_cast<double>(silence.promised) / 1e9));
    return Finding::that("silence_seconds", seconds)
        .is(">=", "threshold", limit)
        .titled(subject.worker.empty() ? "training" : subject.worker, Verb::has, "made no progress")
        .says(sentence(
            "{} has made no progress for {} (limit {}{}). The last step seen was {} step {}.",
            subject.worker.empty() ? "The training" : subject.worker, duration_text(seconds),
            duration_text(limit), promised, core::to_string(subject.mode), subject.step))
        .advises(
            "Most probable first: a worker that waits in a collective operation; a data loader "
            "that hangs; a full disk. A long evaluation without saved values looks the same: raise "
            "the threshold then.")
        .with("last_message", core::to_rfc3339(core::wall_time(silence.last_message)))
        .with("consumer_lag", 0);
  }
};

struct StalledTraining {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr std::string_view kExtensions[] = {"scope", "grace"};
  static Defaults defaults(Preset) { return {.selects = false}; }
};

}  // namespace

RuleDescriptor stalled_training_rule() {
  return {.name = "stalled_training_rule",
          .original_name = "StalledTrainingRule",
          .title = "A training makes no progress for too long.",
          .unit = "clock",
          .needs = "any summary, scalar or step-end frame",
          .presets = "",
          .severity = core::Severity::error,
          .aliases = {"stalled_training"},
          .groups = group::kDefault | group::kPyTorch | group::kXGBoost,
          .read = &read_rule<StalledTraining, StalledProgram>};
}

}  // namespace tocsin::rules
