#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

const char kInput[] = "CrossEntropyLoss_input_0";

// Two rows of a softmax over two classes.
const std::vector<double> kProbabilities{0.25, 0.75, 1, 0};

struct Loss {
  RuleHarness rule;
  FakeWorker worker;
  std::int64_t step = 0;

  explicit Loss(const std::string& with = "{}", std::vector<std::int64_t> shape = {2, 2})
      : rule(RuleHarness::of("probabilities_into_loss", with)) {
    for (const char* name : {kInput, "MSELoss_input_0", "CrossEntropyLoss_input_1"}) {
      rule.feed(worker.dictionary(
          {{core::DictionaryType::tensor, name, Role::activation_in, core::Dtype::f32, shape}}));
    }
  }
  void send(const std::vector<double>& values, const std::string& name = kInput,
            Mode mode = Mode::train) {
    rule.feed(worker.tensors(mode, step, {{name, values, Role::activation_in}}));
    rule.feed(worker.step_end(mode, step++));
  }
  std::string status() {
    rule.feed(worker.end());
    return rule.rule_state();
  }
};

TEST(ProbabilitiesIntoLoss, FiresAtTheThirdSavedStepInARow) {
  Loss job;
  job.send(kProbabilities);
  job.send(kProbabilities);
  EXPECT_TRUE(job.rule.firing().empty());
  job.step = 50;
  job.send(kProbabilities);
  const auto issues = job.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].step, 50);
  EXPECT_EQ(issues[0].evidence.observed.value, 1);
  EXPECT_EQ(issues[0].evidence.tensor->name, kInput);
}

TEST(ProbabilitiesIntoLoss, LogitsAreRight) {
  Loss job;
  for (int i = 0; i < 5; ++i) {
    job.send({-0.25, 1.25, 1, 0});   // rows sum to 1, but a value is below 0
    job.send({0.5, 0.6, 0.5, 0.6});  // within 0 … 1, but rows sum to 1.1
    job.send({0, 0, 0, 0});
    job.send(kProbabilities);
    job.send(kProbabilities);
  }
  EXPECT_EQ(job.status(), "NoIssuesFound");
}

TEST(ProbabilitiesIntoLoss, RowsMayBeOffByTheTolerance) {
  Loss within("{samples: 1}");
  within.send({0.5, 0.5009, 0.5, 0.5009});
  EXPECT_EQ(within.rule.firing().size(), 1U);
  Loss beyond("{samples: 1}");
  beyond.send({0.5, 0.5011, 0.5, 0.5011});
  EXPECT_TRUE(beyond.rule.firing().empty());
}

TEST(ProbabilitiesIntoLoss, NaNCountsNeitherWay) {
  Loss job;
  job.send(kProbabilities);
  job.send({std::nan(""), 0.5, 0.5, 0.5});
  job.send(kProbabilities);
  EXPECT_TRUE(job.rule.firing().empty());
  job.send(kProbabilities);
  EXPECT_EQ(job.rule.firing().size(), 1U);
}

TEST(ProbabilitiesIntoLoss, ClassesStandOnAxisOne) {
  Loss images("{samples: 1}", {1, 2, 1, 2});  // one image, two classes, two pixels
  images.send(kProbabilities);
  EXPECT_EQ(images.rule.firing().size(), 1U);
  Loss single("{samples: 1}", {4});  // one sample of four classes
  single.send({0.25, 0.25, 0.5, 0});
  EXPECT_EQ(single.rule.firing().size(), 1U);
}

TEST(ProbabilitiesIntoLoss, WithoutClassesItDoesNotApply) {
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{4, 1}, {}}) {
    Loss job("{samples: 1}", shape);
    job.send({1, 1, 1, 1});
    job.send({});
    EXPECT_EQ(job.status(), "NoData");
    EXPECT_TRUE(job.rule.firing().empty());
  }
}

TEST(ProbabilitiesIntoLoss, OnlyLossesThatTakeLogitsAreLookedAt) {
  Loss job("{samples: 1}");
  job.send(kProbabilities, "MSELoss_input_0");
  job.send(kProbabilities, "CrossEntropyLoss_input_1");  // the labels, perhaps as probabilities
  EXPECT_TRUE(job.rule.firing().empty());
  Loss chosen("{samples: 1, tensor_regex: ['MSELoss']}");
  chosen.send(kProbabilities, "MSELoss_input_0");
  EXPECT_EQ(chosen.rule.firing().size(), 1U);
}

TEST(ProbabilitiesIntoLoss, ModesAndWorkersAreCountedApart) {
  Loss job;
  job.send(kProbabilities);
  job.send(kProbabilities);
  job.send(kProbabilities, kInput, Mode::eval);
  EXPECT_TRUE(job.rule.firing().empty());
  FakeWorker other("digits", "exploding", 1, 1);
  job.rule.feed(other.tensors(Mode::train, 9, {{kInput, kProbabilities, Role::activation_in}}));
  job.rule.feed(other.step_end(Mode::train, 9));
  EXPECT_TRUE(job.rule.firing().empty());
}

TEST(ProbabilitiesIntoLoss, TheLedgerSaysWhatTheLossCannotReach) {
  Loss job;
  std::vector<Entry> names;
  std::vector<Scalar> values;
  for (const auto& [field, value] :
       {std::pair{"samples", 10.0}, std::pair{"ceiling", 1.461}, std::pair{"trivial", 23.03}}) {
    const std::string name = std::string("ledger/cross_entropy/") + field;
    names.push_back({core::DictionaryType::scalar, name, Role::ledger});
    values.push_back({name, 0, value, Role::ledger});
  }
  job.rule.feed(job.worker.dictionary(names));
  for (int i = 0; i < 4; ++i) {
    for (Scalar& value : values) value.step = job.step;
    job.rule.feed(job.worker.scalars(Mode::train, values));
    job.send(kProbabilities);
  }
  const auto issues = job.rule.firing();
  ASSERT_EQ(issues.size(), 1U) << "the tensor is not told a second time";
  EXPECT_EQ(issues[0].step, 2);
  EXPECT_EQ(issues[0].summary,
            "cross_entropy gets probabilities at train step 2 on worker_0, as in 3 saved steps in "
            "a row, but expects logits. The loss of a sample cannot fall below 1.46; the best "
            "constant answer has 2.3.");
}

}  // namespace
}  // namespace tocsin::rules
