#include "rules/declared/row_rule.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

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
    const std::size_t size = state_bytes();
    OutcomeTally tally(counts);
    Point point;
    point.batch = &batch;
    point.step = batch.step;
    point.time = batch.time;
    point.world_size = batch.world_size;
    point.epoch = batch.epoch;
    std::array<double, 128> values;  // NOLINT: written before it is read
    std::size_t known = 0;           // values of rows before this one are read
    for (std::size_t at = 0; at < rows.size(); ++at) {
      const std::uint32_t i = rows[at];
      if (slide_ && i >= known) {
        known = i / values.size() * values.size();
        slide_->read(batch, known, values);
        known += values.size();
      }
      const std::uint32_t slot = batch.slots[i];
      if (remembers_) fetch_ahead(batch, rows, at, states, size);
      const Row row(batch.columns, batch.rows, i);
      point.row = &row;
      auto* const words = reinterpret_cast<std::uint64_t*>(states + slot * size);
      Verdict verdict;
      if (slide_) {
        verdict = quickly(words, point, values[i % values.size()]);
      } else if (!update(words, point, verdict)) {
        continue;
      }
      tally.add(verdict.outcome);
      if (verdict.outcome == EvaluationOutcome::hit || lives[slot].active()) {
        noted.push_back({slot, i, verdict});
      }
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

  Verdict quickly(std::uint64_t* words, const Point& point, double value) const {
    const double answer = slide_->add(words, point.step, point.time, value);
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
  std::optional<Slide> slide_;
  std::size_t said_ = 0;  // first word of what an issue says
};

}  // namespace

std::shared_ptr<Program> row_program(Rule rule, Choice choice) {
  return std::make_shared<DeclaredRows>(std::move(rule), std::move(choice));
}

}  // namespace tocsin::rules::declared
