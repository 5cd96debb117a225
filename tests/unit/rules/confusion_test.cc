#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

core::SummaryRow labels_row(const std::string& name = "labels", Role role = Role::label) {
  return row_of(name, role, 100, 1, 1);
}

struct Classifier {
  RuleHarness rule;
  FakeWorker worker;
  Mode mode = Mode::eval;
  std::int64_t step = 0;

  explicit Classifier(const std::string& with = "{}", const std::string& preset = "original")
      : rule(RuleHarness::of("confusion", with, preset)) {
    rule.feed(worker.dictionary({{core::DictionaryType::tensor, "labels", Role::label},
                                 {core::DictionaryType::tensor, "predictions", Role::prediction},
                                 {core::DictionaryType::tensor, "truth", Role::label}}));
  }
  // Triples of label, prediction and count.
  void matrix(const std::vector<double>& triples) {
    rule.feed(worker.summary(mode, step, {labels_row()}, {},
                             {{core::VectorStat::confusion, 0, triples}}));
    rule.feed(worker.step_end(mode, step++));
  }
  std::vector<core::Issue> issues() {
    rule.feed(worker.end());
    return rule.firing();
  }
};

std::vector<double> perfect(int classes, double samples) {
  std::vector<double> out;
  for (int i = 0; i < classes; ++i) {
    for (const double x : {static_cast<double>(i), static_cast<double>(i), samples})
      out.push_back(x);
  }
  return out;
}

TEST(Confusion, APerfectClassifierIsNotMistaken) {
  Classifier job("{category_no: 10}");
  job.matrix(perfect(10, 1));
  job.matrix(perfect(10, 37));
  EXPECT_TRUE(job.issues().empty());
  EXPECT_EQ(job.rule.rule_state(), "NoIssuesFound");
}

// Labels 0 … 9, and the prediction of class 4 is 7.
std::vector<double> disturbed() {
  std::vector<double> out = perfect(10, 1);
  out[4 * 3 + 1] = 7;
  return out;
}

TEST(Confusion, OneClassTakenForAnotherFiresBothConditions) {
  Classifier job("{category_no: 10}");
  job.matrix(disturbed());
  const auto issues = job.issues();
  ASSERT_EQ(issues.size(), 2U);
  EXPECT_EQ(issues[0].kind, "diagonal");
  EXPECT_EQ(issues[0].summary,
            "0 % of the samples of class 4 are right (expected: at least 90 %) at eval step 0.");
  EXPECT_EQ(issues[1].kind, "off_diagonal");
  EXPECT_EQ(
      issues[1].summary,
      "100 % of the samples of class 4 are predicted as class 7 (limit 10 %) at eval step 0.");
  EXPECT_EQ(issues[1].labels.get("tensor"), "labels");
}

TEST(Confusion, WithoutALeastDiagonalOnlyTheOtherConditionIsLeft) {
  Classifier job("{category_no: 10, min_diag: 0, max_off_diag: 0.01}");
  job.matrix(disturbed());
  const auto issues = job.issues();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "off_diagonal");
}

TEST(Confusion, TheLimitsThemselvesAreRight) {
  Classifier job;
  job.matrix({0, 0, 90, 0, 1, 10, 1, 1, 100});  // 90 % right, 10 % taken for class 1
  EXPECT_TRUE(job.issues().empty());
  Classifier worse;
  worse.matrix({0, 0, 89, 0, 1, 11, 1, 1, 100});
  EXPECT_EQ(worse.issues().size(), 2U);
}

TEST(Confusion, ColumnsAreSharesOfWhatWasPredicted) {
  // Of class 1 all are right; of what is predicted as 1, half is class 0.
  const std::vector<double> matrix{0, 0, 990, 0, 1, 10, 1, 1, 10};
  Classifier rows;
  rows.matrix(matrix);
  EXPECT_TRUE(rows.issues().empty());
  Classifier columns("{normalize: column}");
  columns.matrix(matrix);
  const auto issues = columns.issues();
  ASSERT_EQ(issues.size(), 2U);
  EXPECT_DOUBLE_EQ(issues[0].evidence.observed.value, 0.5);
  EXPECT_EQ(issues[1].summary,
            "50 % of the samples predicted as class 1 are of class 0 (limit 10 %) at eval step 0.");
}

TEST(Confusion, WorkersAreAddedUp) {
  RuleHarness rule = RuleHarness::of("confusion", "{}", "original");
  FakeWorker zero("digits", "two", 0, 2);
  FakeWorker one("digits", "two", 1, 2);
  // By itself the second would be far off; together 95 of 100 are right.
  const auto send = [&](FakeWorker& worker, std::int64_t step, std::vector<double> triples) {
    rule.feed(worker.summary(Mode::train, step, {labels_row()}, {},
                             {{core::VectorStat::confusion, 0, std::move(triples)}}));
    rule.feed(worker.step_end(Mode::train, step));
  };
  send(zero, 0, {0, 0, 94, 1, 1, 50});
  send(one, 0, {0, 0, 1, 0, 1, 5, 1, 1, 50});
  EXPECT_TRUE(rule.firing().empty());
  send(one, 1, {0, 0, 0, 0, 1, 20, 1, 1, 50});
  EXPECT_TRUE(rule.firing().empty()) << "the other has not ended the step";
  send(zero, 1, {0, 0, 80, 1, 1, 50});
  ASSERT_EQ(rule.firing().size(), 2U);
  EXPECT_DOUBLE_EQ(rule.firing()[0].evidence.observed.value, 0.8);
  EXPECT_EQ(rule.firing()[0].labels.get("worker"), "");
}

TEST(Confusion, OurPresetWaitsForStepTenAndTenSamples) {
  Classifier job("{}", "tocsin");
  const std::vector<double> bad{0, 0, 1, 0, 1, 8, 1, 1, 50};  // nine samples of class 0
  for (int i = 0; i < 12; ++i) job.matrix(bad);
  EXPECT_TRUE(job.issues().empty());
  Classifier more("{}", "tocsin");
  for (int i = 0; i < 14; ++i) more.matrix({0, 0, 5, 0, 1, 5, 1, 1, 50});
  const auto issues = more.issues();
  ASSERT_EQ(issues.size(), 2U);
  EXPECT_EQ(issues[0].step, 12) << "the third in a row";
}

// Class 0 has 200 samples, class 1 has 100, all of them right unless said.
std::size_t told_of(const std::vector<double>& right, double others_right = 100) {
  Classifier job("{start_step: 0}", "tocsin");
  for (const double share : right) {
    job.matrix({0, 0, share, 0, 1, 200 - share, 1, 1, others_right, 1, 0, 100 - others_right});
  }
  return job.issues().size();
}

TEST(Confusion, OursTellsOfClassesThatStayBehindTheOthers) {
  EXPECT_EQ(told_of({100, 100, 100}), 2U);
  EXPECT_EQ(told_of({100, 100}), 0U) << "three in a row are needed";
  EXPECT_EQ(told_of({100, 100, 140, 100, 100}), 0U) << "0.7 of what is right of the others";
  EXPECT_EQ(told_of({100, 100, 139, 100, 100}), 2U);
}

TEST(Confusion, OursLeavesClassesAloneThatAreBeingLearned) {
  EXPECT_EQ(told_of({40, 50, 61}), 0U) << "0.1 better";
  EXPECT_EQ(told_of({40, 80, 120}), 0U);
  EXPECT_EQ(told_of({40, 50, 59}), 2U);
  EXPECT_EQ(told_of({40, 50, 61, 60, 60}), 2U) << "and then no better any more";
}

TEST(Confusion, OursWaitsUntilTheOthersAreLearned) {
  EXPECT_EQ(told_of({0, 0, 0, 0}, 69), 0U);
  EXPECT_EQ(told_of({0, 0, 0, 0}, 70), 2U);
}

TEST(Confusion, ClassesBeyondTheirNumberAreAnError) {
  Classifier job("{category_no: 3}");
  job.matrix(perfect(4, 1));
  EXPECT_TRUE(job.issues().empty());
  bool told = false;
  for (const Event& event : job.rule.events()) {
    const auto* status = std::get_if<core::RuleStatusEvent>(&event);
    if (status == nullptr) continue;
    told = true;
    EXPECT_EQ(status->evaluations.at("error"), 1U);
    EXPECT_EQ(status->evaluations.at("ok"), 0U);
  }
  EXPECT_TRUE(told);
  EXPECT_EQ(job.rule.rule_state(), "Error");
}

TEST(Confusion, WhatIsNoMatrixIsInsufficient) {
  for (const std::vector<double>& triples : {std::vector<double>{0, 0},
                                             {0, 0.5, 1},
                                             {0, -1, 1},
                                             {0, 1, std::nan("")},
                                             {0, 1, HUGE_VAL},
                                             {70000, 1, 1},
                                             {},
                                             {0, 1, 0}}) {
    Classifier job;
    job.matrix(triples);
    EXPECT_TRUE(job.issues().empty());
    EXPECT_EQ(job.rule.rule_state(), "NoData");
  }
}

TEST(Confusion, LabelsWithoutTheStatisticSayWhatIsMissing) {
  Classifier job;
  job.rule.feed(job.worker.summary(Mode::eval, 0, {labels_row()}));
  job.rule.feed(job.worker.step_end(Mode::eval, 0));
  EXPECT_TRUE(job.issues().empty());
  const auto* status = std::get_if<core::RuleStatusEvent>(&job.rule.events().back());
  for (const Event& event : job.rule.events()) {
    if (const auto* one = std::get_if<core::RuleStatusEvent>(&event)) status = one;
  }
  ASSERT_NE(status, nullptr);
  EXPECT_EQ(status->missing,
            (std::vector<std::string>{"collection labels, statistic classes",
                                      "collection predictions, statistic classes"}));
}

TEST(Confusion, TheNamedLabelsWinOverOthersOfTheCollection) {
  Classifier job("{labels: truth}");
  job.rule.feed(job.worker.summary(Mode::eval, 0, {labels_row("labels"), labels_row("truth")}, {},
                                   {{core::VectorStat::confusion, 0, disturbed()},
                                    {core::VectorStat::confusion, 1, perfect(3, 9)}}));
  job.rule.feed(job.worker.step_end(Mode::eval, 0));
  EXPECT_TRUE(job.issues().empty());
  EXPECT_EQ(job.rule.rule_state(), "NoIssuesFound");
}

TEST(Confusion, OfManyClassesTheWorstCellsAreTold) {
  Classifier job;
  std::vector<double> triples = perfect(30, 100);
  for (const double x : {3.0, 4.0, 30.0, 5.0, 6.0, 40.0}) triples.push_back(x);
  job.matrix(triples);
  const auto issues = job.issues();
  ASSERT_FALSE(issues.empty());
  std::string names;
  for (const auto& [name, value] : issues[0].evidence.values) names += name + " ";
  EXPECT_NE(names.find("worst_cells"), std::string::npos) << names;
}

TEST(Confusion, EveryModeIsJudgedByItself) {
  RuleHarness rule = RuleHarness::of("confusion", "{}", "original");
  FakeWorker worker;
  for (const Mode mode : {Mode::global, Mode::train, Mode::eval, Mode::predict}) {
    rule.feed(worker.summary(mode, 0, {labels_row()}, {},
                             {{core::VectorStat::confusion, 0, {0, 1, 5, 1, 1, 5}}}));
    rule.feed(worker.step_end(mode, 0));
  }
  rule.feed(worker.end());
  std::string modes;
  for (const core::Issue& issue : rule.firing()) {
    if (issue.kind == "diagonal") modes += std::string(issue.labels.get("mode")) + " ";
  }
  for (const char* mode : {"global", "train", "eval", "predict"}) {
    EXPECT_NE(modes.find(mode), std::string::npos) << modes;
  }
}

TEST(Confusion, RefusesWhatCannotBe) {
  for (const char* with :
       {"{category_no: 1}", "{min_diag: 1.1}", "{max_off_diag: -0.1}", "{normalize: diagonal}",
        "{min_support: 0}", "{decision_threshold: 1.4}"}) {
    EXPECT_NE(read_rules_text("  - {use: confusion, with: " + std::string(with) + "}").errors, "")
        << with;
  }
}

}  // namespace
}  // namespace tocsin::rules
