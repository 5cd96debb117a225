#include "rules/declared/row_rule.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "rules/declared/block.h"
#include "rules/declared/slide.h"

namespace tocsin::rules::declared {
namespace {

class DeclaredRows final : public RowProgram {
 public:
  DeclaredRows(Rule rule, Choice choice) : rule_(std::move(rule)), choice_(std::move(choice)) {
    common.mode_mask = choice_.modes();
    remembers_ = !rule_.formula.aggregates.empty() || rule_.formula.cut();
    said_ = remembers_ ? rule_.formula.sources[0].words : 0;
    slide_ = Slide::of(rule_.formula);
    const auto& arguments = rule_.formula.sources[0].arguments;
    const auto fits = [](const Argument& one) { return fits_block(one.code); };
    fits_ = remembers_ ? arguments.size() <= kArguments &&
                             std::all_of(arguments.begin(), arguments.end(), fits)
                       : fits_block(rule_.formula.when);
    const std::size_t aggregates = rule_.formula.aggregates.size();
    whole_ = fits_ && remembers_ && !slide_ && !rule_.formula.cut() && aggregates <= kAggregates &&
             fits_block(rule_.formula.when, aggregates);
  }

  [[nodiscard]] Match selects(const Candidate& candidate) const override {
    return choice_.matches(candidate);
  }
  [[nodiscard]] std::size_t state_bytes() const noexcept override {
    return (said_ + kSaidWords + rule_.spoken.size()) * sizeof(std::uint64_t);
  }
  void init(std::byte* state) const override {
    auto* const words = reinterpret_cast<std::uint64_t*>(state);
    std::fill_n(words, said_ + kSaidWords + rule_.spoken.size(), 0U);
    if (remembers_) begin(rule_.formula, 0, words);
  }

  void judge(const RowBatch& batch, std::span<const std::uint32_t> rows, std::byte* states,
             const Life* lives, std::vector<RowHit>& noted,
             EvaluationCounts& counts) const override {
    const Frame frame{batch, rows, states, lives, noted};
    OutcomeTally tally(counts);
    // Of many rows at once, where at least one in so many is to be judged.
    const bool together =
        fits_ && rows.size() >= kFew && rows.back() - rows.front() < kBetween * rows.size();
    if (!together) {
      for (std::size_t at = 0; at < rows.size(); ++at) judge_row(frame, at, nullptr, tally);
      return;
    }
    for (std::size_t at = 0; at < rows.size();) {
      const std::uint32_t from = rows[at];
      const std::size_t count = std::min<std::size_t>(kBlockRows, rows.back() - from + 1);
      const auto end = std::lower_bound(rows.begin() + static_cast<std::ptrdiff_t>(at), rows.end(),
                                        from + count);
      const auto next = static_cast<std::size_t>(end - rows.begin());
      if (remembers_) {
        judge_windows(frame, at, next, count, counts, tally);
      } else {
        judge_block(frame, at, next, count, counts, tally);
      }
      at = next;
    }
  }

  [[nodiscard]] Finding explain(const std::byte* state, const Row*, const RowBatch*,
                                const Subject& subject, unsigned) const override {
    const auto* const said = reinterpret_cast<const std::uint64_t*>(state) + said_;
    Finding finding = tell(rule_, reinterpret_cast<const double*>(said + kSaidWords), subject,
                           [&](const std::string& label) -> std::string {
                             if (label == "worker") return subject.worker;
                             if (label == "mode") return std::string(core::to_string(subject.mode));
                             return subject.name;
                           });
    finding.since(static_cast<std::int64_t>(said[0]), said[1]);
    return finding;
  }

  [[nodiscard]] double badness(const std::byte* state, const Row*) const override {
    if (rule_.op.empty()) return 0;
    const auto* const said = reinterpret_cast<const std::uint64_t*>(state) + said_;
    const double observed = std::bit_cast<double>(said[kSaidWords]);
    return rule_.op[0] == '<' ? -observed : observed;
  }

 private:
  static constexpr std::size_t kSaidWords = 2;  // first step and points of the window that hit
  static constexpr std::size_t kFew = 4;
  static constexpr std::size_t kBetween = 4;
  static constexpr std::size_t kArguments = 4;   // that are computed ahead, at most
  static constexpr std::size_t kAggregates = 4;  // of a condition that is computed for many rows

  /// What judge() was given.
  struct Frame {
    const RowBatch& batch;
    std::span<const std::uint32_t> rows;
    std::byte* states;
    const Life* lives;
    std::vector<RowHit>& noted;

    [[nodiscard]] Point point() const {
      Point out;
      out.batch = &batch;
      out.step = batch.step;
      out.time = batch.time;
      out.world_size = batch.world_size;
      out.epoch = batch.epoch;
      return out;
    }
  };

  // Row number `at`; `arguments`: its, of what the rule's aggregates take, nullptr: not known yet.
  void judge_row(const Frame& frame, std::size_t at, const double* arguments,
                 OutcomeTally& tally) const {
    const std::uint32_t i = frame.rows[at];
    const std::uint32_t slot = frame.batch.slots[i];
    if (remembers_) fetch_ahead(frame.batch, frame.rows, at, frame.states, state_bytes());
    const Row row(frame.batch.columns, frame.batch.rows, i);
    Point point = frame.point();
    point.row = &row;
    point.arguments = arguments;
    std::uint64_t* const words = words_of(frame, i);
    Verdict verdict;
    if (slide_) {
      verdict = quickly(words, point);
    } else if (!update(words, point, verdict)) {
      return;
    }
    tally.add(verdict.outcome);
    if (verdict.outcome == EvaluationOutcome::hit || frame.lives[slot].active()) {
      frame.noted.push_back({slot, i, verdict});
    }
  }

  // Rows number `at` to `end`, which lie within `count` rows: what the aggregates take is computed for all
  // of them first.
  void judge_windows(const Frame& frame, std::size_t at, std::size_t end, std::size_t count,
                     EvaluationCounts& counts, OutcomeTally& tally) const {
    const std::vector<Argument>& arguments = rule_.formula.sources[0].arguments;
    std::array<BlockColumn, kArguments> values;  // NOLINT: written before it is read
    const std::uint32_t from = frame.rows[at];
    const Point point = frame.point();
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      run_block(arguments[k].code, point, from, std::span(values[k]).first(count));
    }
    if (slide_) return judge_slides(frame, at, end, values[0], counts, tally);
    std::array<double, kArguments> own{};
    const auto own_of = [&](std::size_t row) {
      for (std::size_t k = 0; k < arguments.size(); ++k) own[k] = values[k][row - from];
      return own.data();
    };
    if (whole_) return judge_whole(frame, at, end, count, own_of, counts, tally);
    for (; at < end; ++at) judge_row(frame, at, own_of(frame.rows[at]), tally);
  }

  void judge_slides(const Frame& frame, std::size_t at, std::size_t end, const BlockColumn& values,
                    EvaluationCounts& counts, OutcomeTally& tally) const {
    BlockColumn answers;  // NOLINT: written before it is read
    const std::uint32_t from = frame.rows[at];
    for (std::size_t k = at; k < end; ++k) {
      const std::uint32_t i = frame.rows[k];
      fetch_ahead(frame.batch, frame.rows, k, frame.states, state_bytes());
      answers[i - from] = slide_->add(words_of(frame, i), frame.batch.step, values[i - from]);
    }
    settle(frame, at, end, answers, counts, tally);
  }

  // Where every point is judged as it comes: all of them are added, then the condition is computed.
  template <typename OwnOf>
  void judge_whole(const Frame& frame, std::size_t at, std::size_t end, std::size_t count,
                   OwnOf own_of, EvaluationCounts& counts, OutcomeTally& tally) const {
    std::array<BlockColumn, kAggregates> aggregates;  // NOLINT: written before it is read
    BlockColumn answers;                              // NOLINT: the same
    const std::size_t many = rule_.formula.aggregates.size();
    for (std::size_t k = 0; k < many; ++k) {
      std::fill_n(aggregates[k].begin(), count, std::nan(""));  // rows between those to be judged
    }
    const std::uint32_t from = frame.rows[at];
    Point point = frame.point();
    for (std::size_t k = at; k < end; ++k) {
      const std::uint32_t i = frame.rows[k];
      fetch_ahead(frame.batch, frame.rows, k, frame.states, state_bytes());
      point.arguments = own_of(i);
      std::uint64_t* const words = words_of(frame, i);
      arrives(rule_.formula, 0, words, point);
      add(rule_.formula, 0, words, point, false);
      const std::uint64_t* const memory = words;
      const Sight sight{&rule_.formula, &point, &memory, nullptr};
      for (std::uint16_t one = 0; one < many; ++one) {
        aggregates[one][i - from] = aggregate(sight, one);
      }
    }
    point.arguments = nullptr;
    run_block(rule_.formula.when, point, from, std::span(answers).first(count),
              std::span(aggregates).first(many));
    settle(frame, at, end, answers, counts, tally);
  }

  // Whether there is nothing to say of any of these rows, each of which is counted then.
  static bool all_quiet(const Frame& frame, std::size_t at, std::size_t end,
                        const BlockColumn& answers, EvaluationCounts& counts) {
    const std::uint32_t from = frame.rows[at];
    std::uint64_t unknown = 0;
    std::uint64_t fine = 0;
    bool active = false;
    for (std::size_t k = at; k < end; ++k) {
      const std::uint32_t i = frame.rows[k];
      const double answer = answers[i - from];
      unknown += std::isnan(answer) ? 1 : 0;
      fine += answer == 0 ? 1 : 0;
      active |= frame.lives[frame.batch.slots[i]].active();
    }
    if (active || unknown + fine != end - at) return false;
    counts[static_cast<std::size_t>(EvaluationOutcome::insufficient_data)] += unknown;
    counts[static_cast<std::size_t>(EvaluationOutcome::ok)] += fine;
    return true;
  }

  // What the condition has come to of rows whose points are added.
  void settle(const Frame& frame, std::size_t at, std::size_t end, const BlockColumn& answers,
              EvaluationCounts& counts, OutcomeTally& tally) const {
    if (all_quiet(frame, at, end, answers, counts)) return;
    const std::uint32_t from = frame.rows[at];
    Point point = frame.point();
    for (; at < end; ++at) {
      const std::uint32_t i = frame.rows[at];
      const double answer = answers[i - from];
      Verdict found = std::isnan(answer) ? kInsufficient : kOk;
      if (!std::isnan(answer) && answer != 0) {
        const Row row(frame.batch.columns, frame.batch.rows, i);
        point.row = &row;
        found = verdict(words_of(frame, i), point);
        point.row = nullptr;
      }
      tally.add(found.outcome);
      const std::uint32_t slot = frame.batch.slots[i];
      if (found.outcome == EvaluationOutcome::hit || frame.lives[slot].active()) {
        frame.noted.push_back({slot, i, found});
      }
    }
  }

  [[nodiscard]] std::uint64_t* words_of(const Frame& frame, std::uint32_t row) const {
    return reinterpret_cast<std::uint64_t*>(frame.states + frame.batch.slots[row] * state_bytes());
  }

  // The same of a condition that remembers nothing: it is computed for all of them, and a row for itself
  // only where there may be something to say of it.
  void judge_block(const Frame& frame, std::size_t at, std::size_t end, std::size_t count,
                   EvaluationCounts& counts, OutcomeTally& tally) const {
    BlockColumn answers;  // NOLINT: written before it is read
    const std::uint32_t from = frame.rows[at];
    run_block(rule_.formula.when, frame.point(), from, std::span(answers).first(count));
    if (all_quiet(frame, at, end, answers, counts)) return;
    for (; at < end; ++at) judge_row(frame, at, nullptr, tally);
  }

  Verdict quickly(std::uint64_t* words, const Point& point) const {
    const Code& code = rule_.formula.sources[0].arguments[0].code;
    const double value = point.arguments != nullptr
                             ? point.arguments[0]
                             : run(code, Sight{&rule_.formula, &point, nullptr, nullptr});
    const double answer = slide_->add(words, point.step, value);
    if (std::isnan(answer)) return kInsufficient;
    return answer == 0 ? kOk : verdict(words, point);
  }

  // False: the window goes on, there is nothing to judge.
  bool update(std::uint64_t* words, const Point& point, Verdict& out) const {
    bool due = false;
    if (remembers_) {
      due = arrives(rule_.formula, 0, words, point);
      if (due) {
        out = verdict(words, point);
        turn(rule_.formula, 0, words);
      }
      if (!add(rule_.formula, 0, words, point, due)) return due;
    }
    out = verdict(words, point);
    if (rule_.formula.cut()) turn(rule_.formula, 0, words);
    return true;
  }

  Verdict verdict(std::uint64_t* words, const Point& point) const {
    const std::uint64_t* const memory = words;
    const Sight sight{&rule_.formula, &point, &memory, nullptr};
    const double answer = run(rule_.formula.when, sight);
    if (std::isnan(answer)) return kInsufficient;
    if (answer == 0) return kOk;
    const Span span =
        remembers_ ? span_of(rule_.formula, 0, words, point.step) : Span{point.step, 1};
    words[said_] = static_cast<std::uint64_t>(span.first_step);
    words[said_ + 1] = span.points;
    for (std::size_t i = 0; i < rule_.spoken.size(); ++i) {
      words[said_ + kSaidWords + i] =
          std::bit_cast<std::uint64_t>(run(rule_.spoken[i].code, sight));
    }
    return hit();
  }

  Rule rule_;
  Choice choice_;
  bool remembers_ = false;
  bool fits_ = false;   // what is of one row alone can be computed for many at once
  bool whole_ = false;  // and so can the condition, with its aggregates
  std::optional<Slide> slide_;
  std::size_t said_ = 0;  // first word of what an issue says
};

}  // namespace

std::shared_ptr<Program> row_program(Rule rule, Choice choice) {
  return std::make_shared<DeclaredRows>(std::move(rule), std::move(choice));
}

}  // namespace tocsin::rules::declared
