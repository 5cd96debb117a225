// What a rule is to the engine. A rule is a config struct, a plain state struct that is kept for it,
// and pure functions; templates turn them into a Program. The shapes:
//
//   row       one tensor or scalar of one worker and mode, judged when it arrives (or, with a minimum
//             fraction, when the worker has ended the step)
//   series    scalars of completed steps, averaged over workers, and ended evaluation passes
//   step set  all rows of a step, of one worker or of all        (rules/evaluate/step_set.h)
//   sample    snapshots of a node's samples, once per period     (rules/evaluate/sample.h)
//   silence   of a run or worker, judged by the engine's ticks
//
// What fits none of these is an evaluator of its own (rules/evaluate/evaluator.h).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/dictionary.h"
#include "core/frame.h"
#include "core/function_ref.h"
#include "core/value.h"
#include "rules/contract/archive.h"
#include "rules/contract/finding.h"
#include "rules/contract/life.h"
#include "rules/contract/outcome.h"
#include "rules/contract/row.h"
#include "rules/contract/selection.h"
#include "rules/contract/whole.h"
#include "rules/rules.h"

namespace tocsin::rules {

/// What an explanation may speak of.
struct Subject {
  std::string name;    // tensor, scalar or node
  std::string worker;  // empty when several took part
  core::Mode mode = core::Mode::global;
  core::Dtype dtype = core::Dtype::unknown;
  std::int64_t step = 0;
  std::uint64_t hit = 1;        // units that hit at this step so far
  std::uint64_t evaluated = 1;  // units judged at this step so far
  std::string first_hit;        // the first unit of the step that hit: where it began
  std::size_t position = 0;     // of the unit in the order in which its worker sends them

  /// "train step 412 on worker_0"
  [[nodiscard]] std::string place() const;
};

/// Something a rule wants captured.
struct Need {
  std::string collection;
  std::vector<std::string> statistics = {};
  std::int64_t every = 0;  // steps: no wider grid will do; 0: any
  std::int64_t until = 0;  // from this step on any will do; 0: from none on
  friend auto operator<=>(const Need&, const Need&) = default;
};

/// Another rule of the same run whose firing a rule goes by, and where its own texts name it.
struct Followed {
  std::string rule;
  std::string key = {};  // "when", "sequence[1]"
  std::size_t at = 0;    // byte of that text
};

class Evaluator;

/// Who may be judged: a tensor or scalar of one worker in one mode. Texts live during one call.
struct Candidate {
  core::Role role = core::Role::other;
  core::Dtype dtype = core::Dtype::unknown;
  core::Mode mode = core::Mode::global;
  bool scalar = false;
  const Name* name = nullptr;  // null: no dictionary has named it yet
  std::string_view worker;
  bool worker_named = true;  // false: `worker` is a hash still
  std::uint32_t rank = 0;
  std::string_view node;
  std::string_view job;
  std::span<const std::pair<std::string, std::string>> labels;  // of the run
};

/// A rule with its parameters. Immutable; shared by all engines.
/// What a rule sees of tensors. The tensors of a run may be spread over several shards, each judged by
/// itself (docs/wire.md); all workers' rows of one tensor are in one of them.
enum class TensorUse : std::uint8_t {
  none,    // scalars, samples, spans, times: all of them are in the first shard
  one,     // each verdict is of rows of one tensor
  several  // a verdict may need several, or a scalar beside them
};

class Program {
 public:
  Program();
  virtual ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  /// What its evaluators ask for (input::…); 0: it has none.
  [[nodiscard]] virtual std::uint32_t inputs() const noexcept { return 0; }
  /// A new one, for a run that has none yet. It may refer to the program, which outlives it.
  [[nodiscard]] virtual std::unique_ptr<Evaluator> evaluator() const;
  /// Whether its issues stand at steps; false: at times.
  [[nodiscard]] virtual bool step_clock() const noexcept { return true; }
  /// Rules that use several are given none of a run that is spread over shards, and say so.
  [[nodiscard]] virtual TensorUse tensor_use() const noexcept;

  /// Rules that come with it, as they are then configured (complete(), rules.h).
  [[nodiscard]] virtual std::span<const RuleSettings> brings() const noexcept { return {}; }
  /// The run with which it compares all others; nullptr: none.
  [[nodiscard]] virtual const core::RunUid* other() const noexcept { return nullptr; }
  /// Whether a rule of series is told of evaluation passes that bring nothing it selects, too.
  [[nodiscard]] virtual bool every_pass() const noexcept { return false; }
  /// Labels (`job`: the name) that make a family, by whose earlier runs it judges one; empty: it does not.
  [[nodiscard]] virtual std::span<const std::string> family() const noexcept { return {}; }

  /// Whether it looks at a unit: by its selection, or by what only this rule knows.
  [[nodiscard]] virtual Match selects(const Candidate& candidate) const;

  Common common;
  Selection selection;
  std::span<const std::string_view> kinds;  // empty: the rule names none
  std::vector<Need> needs;
  std::vector<Followed> follows;     // then it takes input::kClosedSteps, to be told when to judge
  std::vector<std::string> actions;  // receivers that a parameter of the original asks for
  /// Parameters that are left out of the parameter hash while they have their default: additions to
  /// the original's, so that adding one does not rename every issue.
  std::vector<std::string_view> extensions;
};

// ---------------------------------------------------------------------------------------- rows

struct RowHit {
  std::uint32_t slot = 0;
  std::uint32_t row = 0;
  Verdict verdict;
};

class RowProgram : public Program {
 public:
  [[nodiscard]] TensorUse tensor_use() const noexcept override { return TensorUse::one; }
  [[nodiscard]] virtual std::size_t state_bytes() const noexcept = 0;
  virtual void init(std::byte* state) const = 0;
  /// Judges these rows of the batch (numbers, ascending, at least one; each has a unit). `states`, `lives`: per
  /// unit. `noted` gets the rows that hit, and those whose unit's life is active; everything else is
  /// only counted.
  virtual void judge(const RowBatch& batch, std::span<const std::uint32_t> rows, std::byte* states,
                     const Life* lives, std::vector<RowHit>& noted,
                     EvaluationCounts& counts) const = 0;
  /// `row` is null when the verdict had to wait for the end of the step.
  [[nodiscard]] virtual Finding explain(const std::byte* state, const Row* row,
                                        const RowBatch* batch, const Subject& subject,
                                        unsigned kind) const = 0;
  /// The number by which units of a step are compared; larger is worse.
  [[nodiscard]] virtual double badness(const std::byte* state, const Row* row) const = 0;
  /// Why the last evaluation of the unit had the outcome error.
  [[nodiscard]] virtual std::string trouble(const std::byte* /*state*/) const { return {}; }
  /// Share of a worker's judged units that must hit at a step; 0 = each alone, at once.
  [[nodiscard]] virtual double min_fraction() const noexcept { return 0; }
};

/// What every row program does: update(row, slot, at) → Verdict for each of the rows, of which it is
/// number `at`.
template <typename Update>
void judge_rows(const RowBatch& batch, std::span<const std::uint32_t> rows, const Life* lives,
                std::vector<RowHit>& noted, EvaluationCounts& counts, Update update) {
  OutcomeTally tally(counts);
  const std::uint32_t* const slots = batch.slots.data();
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const std::uint32_t i = rows[at];
    const std::uint32_t slot = slots[i];
    const Verdict verdict = update(Row(batch.columns, batch.rows, i), slot, at);
    tally.add(verdict.outcome);
    if (verdict.outcome == EvaluationOutcome::hit || lives[slot].active()) {
      noted.push_back({slot, i, verdict});
    }
  }
}

/// `Rule` has: Config, State (trivially copyable, without padding), update(config, state, row, batch) → Verdict,
/// explain(config, state, row*, batch*, subject, kind) → Finding, badness(config, state, row*). And
/// perhaps quiet(config, states, batch, from, count) → bool: judges so many rows of the batch from
/// one on together, with the states of their units, if each of them is surely ok; false: it has done
/// nothing. Or quiet(config, batch, from, count), where ok leaves the state as it is: it is also asked
/// about rows that stand between those to be judged.
template <typename Rule>
class RowProgramOf final : public RowProgram {
 public:
  using State = typename Rule::State;
  static_assert(std::is_trivially_copyable_v<State> && Whole<State>, "snapshots hold its bytes");
  typename Rule::Config config;

  [[nodiscard]] TensorUse tensor_use() const noexcept override {
    if constexpr (requires { Rule::kTensorUse; }) return Rule::kTensorUse;
    return TensorUse::one;
  }
  [[nodiscard]] std::size_t state_bytes() const noexcept override { return sizeof(State); }
  void init(std::byte* state) const override { new (state) State{}; }
  // Rows are looked at together where at least one in so many is to be judged.
  static constexpr std::size_t kBetween = 4;
  void judge(const RowBatch& batch, std::span<const std::uint32_t> rows, std::byte* states,
             const Life* lives, std::vector<RowHit>& noted,
             EvaluationCounts& counts) const override {
    auto* all = reinterpret_cast<State*>(states);
    if constexpr (requires { Rule::quiet(config, batch, 0, 0); }) {
      const std::size_t span = rows.back() - rows.front() + 1;
      if (batch.first != RowBatch::kSkip && span <= kBetween * rows.size() &&
          !any_active(lives + batch.first + rows.front(), span) &&
          Rule::quiet(config, batch, rows.front(), span)) {
        counts[static_cast<std::size_t>(EvaluationOutcome::ok)] += rows.size();
        return;
      }
    } else if constexpr (requires { Rule::quiet(config, all, batch, 0, 0); }) {
      const bool side_by_side =
          batch.first != RowBatch::kSkip && rows.back() - rows.front() + 1 == rows.size();
      const std::size_t unit = std::size_t{batch.first} + rows.front();
      if (side_by_side && !any_active(lives + unit, rows.size()) &&
          Rule::quiet(config, all + unit, batch, rows.front(), rows.size())) {
        counts[static_cast<std::size_t>(EvaluationOutcome::ok)] += rows.size();
        return;
      }
    }
    judge_rows(batch, rows, lives, noted, counts,
               [&](const Row& row, std::uint32_t slot, std::size_t) {
                 return Rule::update(config, all[slot], row, batch);
               });
  }
  [[nodiscard]] Finding explain(const std::byte* state, const Row* row, const RowBatch* batch,
                                const Subject& subject, unsigned kind) const override {
    return Rule::explain(config, *reinterpret_cast<const State*>(state), row, batch, subject, kind);
  }
  [[nodiscard]] double badness(const std::byte* state, const Row* row) const override {
    return Rule::badness(config, *reinterpret_cast<const State*>(state), row);
  }
  [[nodiscard]] double min_fraction() const noexcept override {
    if constexpr (requires { config.min_fraction; }) return config.min_fraction;
    return 0;
  }
};

// -------------------------------------------------------------------------------------- series

/// One scalar at a completed step: the plain mean over the workers that delivered it.
struct SeriesValue {
  std::uint64_t name = 0;
  std::string_view text;
  core::Role role = core::Role::other;
  double value = 0;  // of a pass: the plain mean of its step values
  std::uint32_t workers = 0;
  double finite = 0;  // the same without step values that are no finite numbers; NaN: there is none
  std::optional<core::Direction> direction = {};  // as its producer states it
};

/// One series at one step of an evaluation pass: the plain mean over workers.
struct PassValue {
  std::int64_t step = 0;
  std::uint64_t name = 0;
  double value = 0;
};

/// A completed step, or a completed evaluation pass (values are then means over its steps).
struct StepPoint {
  core::Mode mode = core::Mode::train;
  std::int64_t step = 0;
  std::int64_t global_step = 0;
  std::int64_t time = 0;
  std::int64_t train_step = 0;          // the newest judged before or at this point; −1 none
  std::span<const SeriesValue> values;  // in the order of name hashes
  std::span<const PassValue> pass;  // of a pass: all its values, also those not selected, by step
};

/// Key of a unit among the series of one rule and run.
struct SeriesKey {
  std::uint64_t name = 0;
  std::uint8_t mode = 0xFF;  // 0xFF: the series joins modes
  friend auto operator<=>(const SeriesKey&, const SeriesKey&) = default;
};

/// State of one series rule in one run: one shared struct and one per series, all trivially
/// copyable and without padding. Owned by the engine.
class SeriesMemory {
 public:
  static constexpr std::size_t kMaxSeries = 4096;

  template <typename T>
  T& shared() {
    return as<T>(shared_);
  }
  /// nullptr when there are too many series already.
  template <typename T>
  T* of(const SeriesKey& key) {
    auto found = series_.find(key);
    if (found == series_.end()) {
      if (series_.size() >= kMaxSeries) return nullptr;
      found = series_.try_emplace(key).first;
    }
    return &as<T>(found->second);
  }
  template <typename A>
  friend void io(A& archive, SeriesMemory& memory) {
    io(archive, memory.shared_);
    io(archive, memory.series_);
  }
  /// All series so far whose state is a T, known by its size: fn(key, state).
  template <typename T, typename Fn>
  void each(Fn fn) {
    for (auto& [key, bytes] : series_) {
      if (bytes.size() == sizeof(T)) fn(key, as<T>(bytes));
    }
  }
  void clear() {
    shared_.clear();
    series_.clear();
  }

 private:
  template <typename T>
  static T& as(std::vector<std::byte>& bytes) {
    static_assert(std::is_trivially_copyable_v<T> && Whole<T>, "snapshots hold its bytes");
    if (bytes.size() != sizeof(T)) {
      bytes.assign(sizeof(T), std::byte{});
      new (bytes.data()) T{};
    }
    return *reinterpret_cast<T*>(bytes.data());
  }
  std::vector<std::byte> shared_;
  std::map<SeriesKey, std::vector<std::byte>> series_;
};

/// Where a series rule puts its verdicts.
class SeriesReport {
 public:
  using Explain = core::FunctionRef<Finding(const Subject&, unsigned kind)>;
  virtual ~SeriesReport() = default;
  /// `metric` is the unit's label and name in texts; `key.mode` 0xFF leaves the label mode out.
  virtual void evaluated(const SeriesKey& key, std::string_view metric, Verdict verdict,
                         const StepPoint& at, Explain explain) = 0;
};

class SeriesProgram : public Program {
 public:
  [[nodiscard]] std::uint32_t inputs() const noexcept override;
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override;
  /// Every completed step of a mode in `common.mode_mask` that holds a selected value, in order.
  virtual void on_step(SeriesMemory& memory, const StepPoint& point,
                       SeriesReport& report) const = 0;
  /// Every completed evaluation pass: its mean values, placed at its last step.
  virtual void on_pass(SeriesMemory& memory, const StepPoint& pass, SeriesReport& report) const = 0;
  /// Text of a name.
  using NameOf = core::FunctionRef<std::string(std::uint64_t)>;
  /// What the question came to so far (evaluate/answers_so_far.h). With `updates`: nothing unless it is time to tell.
  [[nodiscard]] virtual core::ValueMap answers(SeriesMemory&, NameOf,
                                               std::optional<double> /*updates*/) const {
    return {};
  }
};

/// `Rule` has: Config, on_step(config, memory, point, report), on_pass(…); perhaps kEveryPass: on_pass is also called
/// for passes without a value; perhaps answers(config, memory, name_of) and telling(memory), the TellingTime of them:
/// it fills the run card.
template <typename Rule>
class SeriesProgramOf final : public SeriesProgram {
 public:
  typename Rule::Config config;
  void on_step(SeriesMemory& memory, const StepPoint& point, SeriesReport& report) const override {
    Rule::on_step(config, memory, point, report);
  }
  void on_pass(SeriesMemory& memory, const StepPoint& pass, SeriesReport& report) const override {
    Rule::on_pass(config, memory, pass, report);
  }
  [[nodiscard]] core::ValueMap answers(SeriesMemory& memory, NameOf name_of,
                                       std::optional<double> updates) const override {
    if constexpr (requires { Rule::answers(config, memory, name_of); }) {
      if (!updates || Rule::telling(memory).due(*updates)) {
        return Rule::answers(config, memory, name_of);
      }
    }
    return {};
  }
  [[nodiscard]] bool every_pass() const noexcept override {
    return requires { Rule::kEveryPass; };
  }
};

// ------------------------------------------------------------------------------------ describe

/// A rule as it is with these parameters, and what is wrong with them.
RuleSettings make_rule_with(const RuleDescriptor& rule, Preset preset, const core::ValueMap& with,
                            config::Diagnostics& problems);

/// Reads the shared parameters, then the rule's own, and checks what spans both. `Rule` has
/// defaults(preset), read(in, config, preset), kKinds, and optionally needs(config), kExtensions,
/// adjust(config, program) for a selection that depends on the config, and check(in, config, program)
/// for errors that only the whole shows.
template <typename Rule, typename ProgramType>
std::shared_ptr<const Program> read_rule(config::Reader& in, Preset preset) {
  auto program = std::make_shared<ProgramType>();
  read_common(in, Rule::defaults(preset), program->common, program->selection);
  if constexpr (requires { program->config; }) {
    Rule::read(in, program->config, preset);
    if constexpr (requires { Rule::needs(program->config); }) {
      program->needs = Rule::needs(program->config);
    }
    if constexpr (requires { Rule::adjust(program->config, *program); }) {
      Rule::adjust(program->config, *program);
    }
    if constexpr (requires { Rule::check(in, program->config, *program); }) {
      Rule::check(in, program->config, *program);
    }
  } else {
    program->read(in, preset);
  }
  program->kinds = Rule::kKinds;
  if constexpr (requires { Rule::kExtensions; }) {
    program->extensions.assign(std::begin(Rule::kExtensions), std::end(Rule::kExtensions));
  }
  return program;
}
template <typename Rule>
std::shared_ptr<const Program> read_row_rule(config::Reader& in, Preset preset) {
  return read_rule<Rule, RowProgramOf<Rule>>(in, preset);
}
template <typename Rule>
std::shared_ptr<const Program> read_series_rule(config::Reader& in, Preset preset) {
  return read_rule<Rule, SeriesProgramOf<Rule>>(in, preset);
}

/// Numbers in sentences: three significant digits, no trailing zeros, whole from 1000 to 10 million; "NaN", "+Inf".
std::string figure(double value);

}  // namespace tocsin::rules
