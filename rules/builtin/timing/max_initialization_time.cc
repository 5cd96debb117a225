// Fires when a training takes too long to take its first step.
//
// Reads   when the run became known to the engine, and whether a summary, scalar or step-end frame
//         has come since.
// Window  now − that time. Judged by the engine's ticks, and only when everything that exists has
//         been read; in a replay the records' times are the clock.
// Fires   once, when that is more than `threshold` minutes; the first step resolves it.
// Quiet   as soon as a step of any mode has begun, and for runs that announced their end.
// Source  Amazon SageMaker Debugger, MaxInitializationTime; docs/rules/max_initialization_time.md.
//         Minutes, as the parameter says, although its report speaks of a share of the whole time.

#include "rules/contract/clock_rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {
namespace {

class InitializationProgram final : public ClockProgram {
 public:
  void read(config::Reader& in, Preset) {
    constexpr std::int64_t kMostMinutes = 1'000'000;
    std::int64_t minutes = 20;
    std::int64_t interval = 60'000'000;
    in.optional("threshold", minutes, config::between(std::int64_t{0}, kMostMinutes),
                "minutes until the first step");
    in.optional("scan_interval_us", interval,
                config::between(std::int64_t{1}, std::int64_t{86'400'000'000}),
                "accepted for old configurations; the clock is checked every second");
    threshold = std::chrono::minutes(minutes);
    until_first_step = true;
  }

  [[nodiscard]] Finding explain(const Silence& silence, const Subject& subject) const override {
    constexpr double kNsPerMinute = 60e9;
    const double waited =
        static_cast<double>(distance(silence.now, silence.last_message)) / kNsPerMinute;
    const double limit = static_cast<double>(threshold.count()) / kNsPerMinute;
    return Finding::that("minutes", waited)
        .is(">", "threshold", limit)
        .titled(subject.name.empty() ? "training" : subject.name, Verb::has,
                "not taken its first step")
        .says(sentence("{} has not taken its first step after {} minutes (limit {} minutes).",
                       subject.name.empty() ? "The training" : subject.name, waited, limit))
        .advises(
            "Check what happens before the first step. Most probable first: downloading data; "
            "building caches; compiling; waiting for other workers. Stream the data instead of "
            "loading all of it.")
        .with("started_at", core::to_rfc3339(core::wall_time(silence.last_message)))
        .with("last_message", core::to_rfc3339(core::wall_time(silence.heard)))
        .with("nodes", silence.nodes);
  }
};

struct MaxInitialization {
  static constexpr std::span<const std::string_view> kKinds{};
  static Defaults defaults(Preset) { return {.selects = false}; }
};

}  // namespace

RuleDescriptor max_initialization_time() {
  return {.name = "max_initialization_time",
          .original_name = "MaxInitializationTime",
          .title = "A training takes too long to take its first step.",
          .unit = "clock",
          .needs = "any telemetry",
          .presets = "",
          .severity = core::Severity::warning,
          .groups = group::kProfiler,
          .read = &read_rule<MaxInitialization, InitializationProgram>};
}

}  // namespace tocsin::rules
