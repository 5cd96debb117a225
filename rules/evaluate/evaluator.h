// One rule judging one run: its own state, saved and loaded alone. A shape of rules is a class of
// evaluators; a rule of the shape is a program that makes one. Rows are the exception: they are so
// many that the engine keeps their states side by side (rules/engine/memory/rosters.h).
//
// An evaluator takes what it has asked for, in the order of the log, and says what it finds to its
// Scope. It holds no clock, reads no configuration but its program's, and its verdicts follow from
// what it was given alone, so that a replay gives the same.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/frame.h"
#include "core/function_ref.h"
#include "rules/contract/archive.h"
#include "rules/contract/layout.h"
#include "rules/contract/rule.h"
#include "rules/evaluate/place.h"
#include "rules/evaluate/snapshot.h"

namespace tocsin::rules {

/// A step that one worker has ended.
struct WorkerStep {
  std::uint32_t worker = 0;
  core::Mode mode = core::Mode::train;
  std::int64_t step = 0;
  std::int64_t global_step = 0;
  std::int64_t start = 0;  // UTC ns; equal to `end` where the worker does not say
  std::int64_t end = 0;
  bool partial = false;  // frames were lost since the step end before
  bool skipped = false;  // mixed precision left the update out (flag 20)
  // Passes through the mode that the worker had begun before; NaN: its producer counts none.
  double epoch = std::numeric_limits<double>::quiet_NaN();
};

/// Rows of one frame that the rule selects: tensors, or one scalar.
struct WorkerRows {
  std::uint32_t worker = 0;
  core::Mode mode = core::Mode::train;
  std::int64_t step = 0;
  std::int64_t global_step = 0;
  std::int64_t time = 0;
  std::int64_t offset = 0;
  std::int64_t after_train = 0;  // the worker's last ended train step
  double loss_scale = 1;
  double epoch = std::numeric_limits<double>::quiet_NaN();  // as in WorkerStep
  const core::FrameView* frame = nullptr;                   // null for a scalar
  const core::SummaryRow* scalar = nullptr;
  std::span<const std::uint32_t> rows;  // of the frame: those that are selected and new
};

/// Nothing of them yet: what a worker measured of the step itself comes with its end.
inline WorkerRows rows_of(const WorkerStep& step) {
  WorkerRows out;
  out.worker = step.worker;
  out.mode = step.mode;
  out.step = step.step;
  out.global_step = step.global_step;
  out.time = step.end;
  out.epoch = step.epoch;
  return out;
}

/// What a rule of the run came to so far.
struct RuleResult {
  const RuleSettings* rule = nullptr;
  EvaluationCounts counts{};
  core::RuleState state = core::RuleState::no_data;
  const core::ValueMap* summary = nullptr;  // at the end of the run; null: it sums nothing up
};

/// UTC ns; 0: not known.
struct RunTimes {
  std::int64_t started = 0;  // its first worker
  std::int64_t ended = 0;
  std::int64_t newest = 0;  // measurement
};

/// Everything that an evaluator may ask of its run, and where its verdicts go. Valid during one
/// call.
class Scope {
 public:
  using SayLabels = core::FunctionRef<Labels()>;
  using Explain = core::FunctionRef<Finding(const Subject&, unsigned kind)>;

  virtual ~Scope() = default;
  /// What the run's dictionaries say of a name; nullptr: nothing yet.
  [[nodiscard]] virtual const Name* find(std::uint64_t name) const = 0;
  /// The name's text; its hash in hex where no dictionary has it.
  [[nodiscard]] virtual std::string text(std::uint64_t name) const = 0;
  [[nodiscard]] virtual std::string worker(std::uint32_t number) const = 0;
  [[nodiscard]] virtual std::uint32_t rank(std::uint32_t number) const = 0;
  /// Where it runs; empty: it has not said.
  [[nodiscard]] virtual std::string node(std::uint32_t number) const = 0;
  [[nodiscard]] virtual std::size_t workers() const = 0;
  [[nodiscard]] virtual std::string job() const = 0;
  /// Uid and attempt: "4e30…/1".
  [[nodiscard]] virtual std::string run() const = 0;
  /// Where hosted rules are asked; nullptr: nowhere in this process.
  [[nodiscard]] virtual StepHost* host() const = 0;
  /// What matchers may ask of a worker; name, role, mode and the like are left to the caller.
  [[nodiscard]] virtual Candidate who(std::uint32_t number) const = 0;
  /// 0 unknown.
  [[nodiscard]] virtual std::uint32_t world_size() const = 0;
  /// Of the record being read.
  [[nodiscard]] virtual std::int64_t offset() const = 0;
  /// One evaluation of one unit. `unit`: its number, the same every time (unit_number of what makes
  /// it); `worker`: for the limit of open units, kNoWorker where several took part. The subject's
  /// name, mode and step come from `subject` and `place`.
  virtual void judged(std::uint64_t unit, std::uint32_t worker, Verdict verdict, const Place& place,
                      const Subject& subject, SayLabels labels, Explain explain) = 0;
  /// Counts an evaluation that says nothing: no hit, of a unit of which nothing is open. False: it is
  /// for judged(), and was not counted. Spares a caller the texts that only an issue needs.
  virtual bool quiet(std::uint64_t unit, Verdict verdict) = 0;
  /// An evaluation that nothing is to be said of: there was no unit to judge yet.
  virtual void counted(EvaluationOutcome outcome) = 0;
  /// An evaluation went wrong: outcome and status `Error`, with why. Until recovered().
  virtual void failed(std::string reason) = 0;
  /// It works again.
  virtual void recovered() = 0;
  /// At the end of the run: what the rule has to tell of it as a whole. It goes with its last status,
  /// which is IssuesFound where `issues_of` names rules whose issues it stands for.
  virtual void summary(core::ValueMap told, std::string issues_of = {}) = 0;
  /// While the run goes on: what the rule has to tell of it so far, as of the end of an evaluation
  /// period, UTC ns. Each period is told once.
  virtual void interim(std::int64_t period_end, core::ValueMap told) = 0;
  /// The same at any `time`, UTC ns, whatever the rule has found: it may have judged nothing yet.
  virtual void so_far(std::int64_t time, core::ValueMap told) = 0;
  /// At the end of the run: why the rule could judge nothing of it, if that is so.
  virtual void unjudged(std::string why) = 0;
  /// Of every configured rule, in their order.
  [[nodiscard]] virtual std::vector<RuleResult> results() const = 0;
  [[nodiscard]] virtual RunTimes times() const = 0;
  /// Whether this run is the one that the rule compares others with (Program::other).
  [[nodiscard]] virtual bool is_other() const = 0;
  /// The rule's evaluator of that run, or of the run's family (Program::family), as far as this partition
  /// knows it; nullptr: nothing is known.
  [[nodiscard]] virtual const Evaluator* other() const = 0;
  /// Rows that came when their step had been judged: left out, and counted.
  virtual void late(std::size_t rows) = 0;
  /// A step was judged before its end, because too much waited.
  virtual void closed_early() = 0;

  static constexpr std::uint32_t kNoWorker = 0xFFFFFFFFU;
};

/// Number of a unit that is made of several parts.
std::uint64_t unit_number(std::initializer_list<std::string_view> parts);

/// The text behind such a number, written part by part; a short one allocates nothing.
class UnitText {
 public:
  UnitText& add(std::string_view part);
  [[nodiscard]] std::uint64_t number() const;

 private:
  std::array<char, 256> short_;  // NOLINT: written before it is read
  std::size_t size_ = 0;
  std::string long_;  // what does not fit: all of it
};

/// What an evaluator asks for.
namespace input {
inline constexpr std::uint32_t kRows = 1;         // on_rows: what the program selects
inline constexpr std::uint32_t kStepEnds = 2;     // on_step_end
inline constexpr std::uint32_t kClosedSteps = 4;  // on_closed
inline constexpr std::uint32_t kValues = 8;       // on_values
inline constexpr std::uint32_t kSnapshots = 16;   // on_snapshot
inline constexpr std::uint32_t kSpans = 32;       // on_spans
inline constexpr std::uint32_t kSamples = 64;     // on_samples
inline constexpr std::uint32_t kIssues = 128;     // on_issue; on_end comes after that of the others
inline constexpr std::size_t kCount = 8;
}  // namespace input

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual void on_rows(const WorkerRows&, Scope&) {}
  /// Also where the worker only shows by a later step that this one is over.
  virtual void on_step_end(const WorkerStep&, Scope&) {}
  /// Nobody can add to a step of this mode up to `step` any more.
  virtual void on_closed(core::Mode, std::int64_t /*step*/, Scope&) {}
  /// Scalars of a completed step, or (`pass`) of a completed evaluation pass.
  virtual void on_values(const StepPoint&, bool /*pass*/, const Place&, Scope&) {}
  virtual void on_snapshot(const NodeSnapshot&, Scope&) {}
  /// A frame of system samples as it came; `node`: its name.
  virtual void on_samples(std::uint32_t /*worker*/, std::string_view /*node*/,
                          const core::FrameView&, Scope&) {}
  virtual void on_spans(std::uint32_t /*worker*/, const core::FrameView&, Scope&) {}
  /// An issue of a configured rule was raised, reported again or resolved. Judge nothing here.
  virtual void on_issue(const core::Issue&) {}
  /// The rule's Program::follows[which] hit at a step, often enough to be reported, whether its
  /// cooldown let it or not. Judge nothing here.
  virtual void on_fired(std::size_t /*which*/, const Place&, const Labels& /*unit*/) {}
  /// Of rules that follow others, in place of on_closed: what those say of steps up to this one has
  /// been said.
  virtual void on_settled(core::Mode, std::int64_t /*step*/, Scope&) {}
  /// The run that the rule compares with has gone on, or is over.
  virtual void on_other(Scope&) {}
  /// Of the run that others are compared with: what runs in other partitions do not know of it yet,
  /// by keys that are the rule's own; nullopt: they may forget it.
  using Tell = core::FunctionRef<void(std::string key, std::optional<std::string> value)>;
  virtual void publish(Tell) {}
  /// Here that run is not read: this is what publish() said where it is.
  virtual void learn(std::string_view /*key*/, std::optional<std::string_view> /*value*/) {}
  /// Whether learn() would say something new.
  [[nodiscard]] virtual bool knows(std::string_view /*key*/, bool /*there*/) const { return true; }
  /// A worker began anew: its steps may go back.
  virtual void on_restart(std::uint32_t /*worker*/) {}
  /// The run is over: what still waits is judged.
  virtual void on_end(Scope&) {}

  virtual void save(Writer& out) = 0;
  virtual void load(Loader& in) = 0;
  /// Fingerprint of what save() writes (layout_of).
  [[nodiscard]] virtual std::uint64_t layout() const = 0;
};

/// An evaluator whose state is its member `state`, which has io().
template <typename State>
class EvaluatorOf : public Evaluator {
 public:
  void save(Writer& out) override { io(out, state); }
  void load(Loader& in) override { io(in, state); }
  [[nodiscard]] std::uint64_t layout() const override {
    static const std::uint64_t kLayout = layout_of<State>();
    return kLayout;
  }

  State state{};
};

}  // namespace tocsin::rules
