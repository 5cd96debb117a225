// One rule by itself, asked directly: its answer to every row or step, also those that an engine
// counts and tells nobody. Answers are texts: "ok", "hit", "hit low", "insufficient_data",
// "not_applicable", "unselected".
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rules/contract/loss_course.h"
#include "rules/contract/rule.h"
#include "rules/engine/memory/names.h"
#include "tests/support/rule_harness.h"

namespace tocsin::rules {

/// The program of one rule with its `with:` map in flow style; errors fail the test.
inline std::shared_ptr<const Program> bench_program(const std::string& rule,
                                                    const std::string& with,
                                                    const std::string& preset) {
  auto read = testing_support::read_rules_text("  - {use: " + rule + ", preset: " + preset +
                                               ", with: " + with + "}");
  EXPECT_EQ(read.errors.find(": error:"), std::string::npos) << read.errors;
  if (read.config.rules.empty()) return nullptr;
  return read.config.rules.front().program;
}

/// What a reader says of a rule that it refuses.
inline std::string refusal(const std::string& rule, const std::string& with,
                           const std::string& preset = "tocsin") {
  return testing_support::read_rules_text("  - {use: " + rule + ", preset: " + preset +
                                          ", with: " + with + "}")
      .errors;
}

inline std::string answer_text(const Program& program, Verdict verdict) {
  std::string text(to_string(verdict.outcome));
  if (verdict.outcome != EvaluationOutcome::hit) return text;
  for (unsigned kind = 0; kind < program.kinds.size(); ++kind) {
    if ((verdict.kinds >> kind & 1U) != 0) text += " " + std::string(program.kinds[kind]);
  }
  return text;
}

/// What goes with a row beside its columns.
struct RowContext {
  struct Sparse {
    core::SparseStat stat{};
    double value = 0;
    std::vector<double> parameters = {};
  };
  struct Vector {
    std::uint16_t stat = 0;  // its id in core/statistics.cc
    std::vector<double> parameters = {};
    std::vector<double> values = {};
  };
  std::vector<Sparse> sparse = {};
  std::vector<Vector> vectors = {};
  double learning_rate = std::nan("");
  double max_learning_rate = std::nan("");
  double loss_scale = 1;
  core::Mode mode = core::Mode::train;
  const LossCourse* losses = nullptr;
};

/// A row rule and one unit of it.
class RowBench {
 public:
  explicit RowBench(const std::string& rule, const std::string& with = "{}",
                    const std::string& preset = "tocsin")
      : program_(bench_program(rule, with, preset)),
        rule_(dynamic_cast<const RowProgram*>(program_.get())) {
    EXPECT_NE(rule_, nullptr) << rule << " is no row rule";
    state_.resize(rule_->state_bytes());
    rule_->init(state_.data());
  }

  /// What the dictionary says of a name.
  RowBench& knows(const std::string& text, std::vector<std::int64_t> shape,
                  std::string op_type = {}, core::Role role = core::Role::other) {
    Name name;
    name.text = text;
    name.shape = std::move(shape);
    name.op_type = std::move(op_type);
    name.role = role;
    names_.set(core::name_hash(text), std::move(name), false);
    return *this;
  }

  std::string judge(std::int64_t step, const core::SummaryRow& row, const RowContext& with = {}) {
    finding.reset();
    const core::Role role = core::meta::role(row.meta);
    const Name* about = names_.find(row.name);
    if (!rule_->common.wants_mode(with.mode) || !rule_->common.wants_step(step)) {
      return "unselected";
    }
    if (rule_->selection.matches(role, about) != Match::yes) return "unselected";
    const std::uint32_t slot = 0;
    const Life life;
    const Extensions extensions(with);
    RowBatch batch;
    batch.columns = reinterpret_cast<const std::byte*>(&row);
    batch.rows = 1;
    batch.slots = {&slot, 1};
    batch.first = slot;
    batch.mode = with.mode;
    batch.step = step;
    batch.loss_scale = with.loss_scale;
    batch.sparse = extensions.sparse;
    batch.vectors = extensions.vectors;
    batch.set_learning_rate(with.learning_rate, with.max_learning_rate);
    batch.names = &names_;
    batch.losses = with.losses;
    std::vector<RowHit> noted;
    EvaluationCounts counts{};
    rule_->judge(batch, std::span(&slot, 1), state_.data(), &life, noted, counts);
    for (std::size_t i = 0; i < kEvaluationOutcomes; ++i) {
      if (counts[i] == 1 && noted.empty())
        return std::string(to_string(static_cast<EvaluationOutcome>(i)));
    }
    if (noted.size() != 1) return "nothing";
    explain(noted.front(), row, batch, about);
    return answer_text(*rule_, noted.front().verdict);
  }
  std::string judge(std::int64_t step, const testing_support::TensorValues& tensor,
                    const RowContext& with = {}) {
    return judge(step, testing_support::summarize(tensor), with);
  }

  [[nodiscard]] const Program& program() const { return *program_; }
  std::optional<Finding> finding;  // of the latest answer's first kind, if it was a hit
  double badness = 0;

 private:
  /// Extensions as a frame has them.
  struct Extensions {
    std::vector<core::SparseColumn> sparse;
    std::vector<core::SparseVector> vectors;

    explicit Extensions(const RowContext& with) {
      for (const RowContext::Sparse& one : with.sparse) {
        core::SparseColumn& column = sparse.emplace_back();
        column.stat = one.stat;
        column.params_bytes = bytes_of(one.parameters);
        column.row_bytes = std::as_bytes(std::span(&row_, 1));
        column.value_bytes = std::as_bytes(std::span(&one.value, 1));
      }
      for (const RowContext::Vector& one : with.vectors) {
        vectors.push_back({static_cast<decltype(core::SparseVector::stat)>(one.stat), 0,
                           bytes_of(one.parameters), bytes_of(one.values)});
      }
    }

   private:
    static std::span<const std::byte> bytes_of(const std::vector<double>& numbers) {
      return std::as_bytes(std::span(numbers));
    }
    std::uint32_t row_ = 0;
  };

  void explain(const RowHit& hit, const core::SummaryRow& row, const RowBatch& batch,
               const Name* about) {
    Subject subject;
    subject.name = about == nullptr ? "tensor" : about->text;
    subject.worker = "worker_0";
    subject.mode = batch.mode;
    subject.dtype = core::meta::dtype(row.meta);
    subject.step = batch.step;
    const Row view(batch.columns, 1, 0);
    unsigned kind = 0;
    while (kind < 7 && (hit.verdict.kinds >> kind & 1U) == 0) ++kind;
    finding = rule_->explain(state_.data(), &view, &batch, subject, kind);
    badness = rule_->badness(state_.data(), &view);
  }

  std::shared_ptr<const Program> program_;
  const RowProgram* rule_;
  std::vector<std::byte> state_;
  NameTable names_;
};

/// One value of a step.
struct BenchValue {
  std::string name;
  double value = 0;
  core::Role role = core::Role::loss;
  std::optional<core::Direction> direction = {};
  double left_out = 0;  // of a pass: the sum of its steps that are no finite numbers
};

/// A series rule with its memory of one run.
class SeriesBench {
 public:
  explicit SeriesBench(const std::string& rule, const std::string& with = "{}",
                       const std::string& preset = "tocsin")
      : program_(bench_program(rule, with, preset)),
        rule_(dynamic_cast<const SeriesProgram*>(program_.get())) {
    EXPECT_NE(rule_, nullptr) << rule << " is no series rule";
  }

  /// The answers to a completed step, "loss: ok" or, of several, joined by "; ". A step of which
  /// the rule is not told, or says nothing, is "".
  std::string step(core::Mode mode, std::int64_t number, const std::vector<BenchValue>& values) {
    if (mode == core::Mode::train) trained_ = number;
    return hand(mode, number, values, false);
  }
  /// A completed evaluation pass that ended at this eval step.
  std::string pass(std::int64_t number, const std::vector<BenchValue>& values) {
    return hand(core::Mode::eval, number, values, true);
  }

  struct Told {
    SeriesKey key;
    std::string metric;
    std::string kind;
    Finding finding;
  };
  std::vector<Told> told;  // every hit so far, kind by kind

 private:
  class Report final : public SeriesReport {
   public:
    Report(SeriesBench& bench, std::string& text) : bench_(bench), text_(text) {}
    void evaluated(const SeriesKey& key, std::string_view metric, Verdict verdict,
                   const StepPoint& at, Explain explain) override {
      text_ += (text_.empty() ? "" : "; ") + std::string(metric) + ": " +
               answer_text(*bench_.program_, verdict);
      if (verdict.outcome != EvaluationOutcome::hit) return;
      Subject subject;
      subject.name = metric;
      subject.mode = at.mode;
      subject.step = at.step;
      for (unsigned kind = 0; kind < 8; ++kind) {
        if ((verdict.kinds >> kind & 1U) == 0) continue;
        const std::string word(kind < bench_.rule_->kinds.size() ? bench_.rule_->kinds[kind] : "");
        bench_.told.push_back({key, std::string(metric), word, explain(subject, kind)});
      }
    }

   private:
    SeriesBench& bench_;
    std::string& text_;
  };

  std::string hand(core::Mode mode, std::int64_t number, const std::vector<BenchValue>& values,
                   bool pass) {
    if (!rule_->common.wants_mode(mode) || !rule_->common.wants_step(number)) return "";
    std::vector<SeriesValue> chosen;
    for (const BenchValue& one : values) {
      Name name;
      name.text = one.name;
      if (rule_->selection.matches(one.role, &name) != Match::yes) continue;
      SeriesValue& value = chosen.emplace_back();
      value.name = core::name_hash(one.name);
      value.text = one.name;
      value.role = one.role;
      value.value = one.left_out == 0 ? one.value : one.left_out;
      value.finite = std::isfinite(one.value) ? one.value : std::nan("");
      value.workers = 1;
      value.direction = one.direction;
    }
    if (chosen.empty()) return "";
    std::sort(chosen.begin(), chosen.end(),
              [](const SeriesValue& a, const SeriesValue& b) { return a.name < b.name; });
    StepPoint point;
    point.mode = mode;
    point.step = number;
    point.train_step = trained_;
    point.values = chosen;
    std::string text;
    Report report(*this, text);
    if (pass) {
      rule_->on_pass(memory_, point, report);
    } else {
      rule_->on_step(memory_, point, report);
    }
    return text;
  }

  std::shared_ptr<const Program> program_;
  const SeriesProgram* rule_;
  SeriesMemory memory_;
  std::int64_t trained_ = -1;
};

}  // namespace tocsin::rules
