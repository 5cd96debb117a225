// parity of jobs that train by batches: evaluation against training.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "rules/builtin/data/world_course.h"
#include "tests/support/rule_harness.h"
#include "tests/unit/rules/evidence/noise.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

/// What a batch has: moments of its input, its loss.
struct WorldBatch {
  double mean = 0;
  double deviation = 1;
  double rows = 32;
  double loss = 1;
  double trivial = 2.3;
  std::vector<double> shares = {};  // of classes
};

struct WorldJob : SteppedJob {
  explicit WorldJob(const std::string& with = "{}", std::uint64_t seed = 1)
      : SteppedJob{RuleHarness::of("parity", with)}, chance(seed) {
    tell({{"world/passes", 1}});
  }
  void tell(const std::vector<std::pair<std::string, double>>& fields) {
    std::vector<Scalar> scalars;
    std::vector<Entry> entries;
    for (const auto& [field, value] : fields) {
      scalars.push_back({"ledger/" + field, step, value, Role::ledger});
      entries.push_back({core::DictionaryType::scalar, "ledger/" + field, Role::ledger});
    }
    rule.feed(worker.dictionary(entries));
    rule.feed(worker.scalars(mode, scalars));
  }
  void batch(const WorldBatch& b) {
    const double mean = b.mean + chance.normal() * b.deviation / std::sqrt(b.rows);
    const double var = b.deviation * b.deviation * (1 + chance.normal() * std::sqrt(2 / b.rows));
    const double square = var + mean * mean;
    const double loss = b.rows * (b.loss + 0.05 * chance.normal());
    std::vector<std::pair<std::string, double>> fields{
        {"world/input/0/batches", 1}, {"world/input/0/rows", b.rows},
        {"world/input/0/mean", mean}, {"world/input/0/square", square},
        {"cross_entropy/calls", 1},   {"cross_entropy/samples", b.rows},
        {"cross_entropy/loss", loss}, {"cross_entropy/trivial", b.rows * b.trivial}};
    if (mode == Mode::eval) {
      fields.emplace_back("world/input/0/weights", 1);
      const double last = before.value_or(mean);
      fields.emplace_back("world/input/0/mean_squared", mean * mean);
      fields.emplace_back("world/input/0/mean_lagged", mean * last);
      fields.emplace_back("world/input/0/square_squared", square * square);
      fields.emplace_back("world/input/0/square_lagged", square * before_square.value_or(square));
      before = mean;
      before_square = square;
    }
    if (!b.shares.empty()) {
      fields.emplace_back("world/class/cross_entropy/batches", 1);
      fields.emplace_back("world/class/cross_entropy/rows", b.rows);
      if (mode == Mode::eval) fields.emplace_back("world/class/cross_entropy/weights", 1);
      for (std::size_t k = 0; k < b.shares.size(); ++k) {
        const double share =
            b.shares[k] + chance.normal() * std::sqrt(b.shares[k] * (1 - b.shares[k]) / b.rows);
        fields.emplace_back("world/class/cross_entropy/" + std::to_string(k) + "/mean", share);
      }
    }
    tell(fields);
  }
  using At = std::function<WorldBatch(double)>;
  WorldJob& train(int steps, const At& at) {
    for (int i = 0; i < steps; ++i) {
      batch(at(static_cast<double>(i) / steps));
      end();
    }
    return *this;
  }
  WorldJob& train(int steps, const WorldBatch& b = {}) {
    return train(steps, [&](double) { return b; });
  }
  /// A pass that is one step.
  WorldJob& evaluate(int batches, const At& at) {
    const std::int64_t trained = step;
    mode = Mode::eval;
    step = evaluated++;
    before.reset();
    before_square.reset();
    for (int i = 0; i < batches; ++i) batch(at(static_cast<double>(i) / batches));
    end();
    mode = Mode::train;
    step = trained;
    return *this;
  }
  WorldJob& evaluate(int batches, const WorldBatch& b) {
    return evaluate(batches, [&](double) { return b; });
  }
  /// "kind severity", of all issues at the end.
  std::string found() {
    end();
    std::string out;
    for (const core::Issue& issue : rule.firing()) {
      out += (out.empty() ? "" : ", ") + issue.kind + " " +
             std::string(core::to_string(issue.severity));
    }
    return out;
  }

  Noise chance;
  std::int64_t evaluated = 0;
  std::optional<double> before;
  std::optional<double> before_square;
};

WorldBatch input(double mean, double deviation) { return {.mean = mean, .deviation = deviation}; }

// ---------------------------------------------------------------------------------- faults

TEST(ParityWorlds, EvaluationThatIsNotNormalisedIsTold) {
  WorldJob job;
  job.train(100).evaluate(25, input(0.45, 0.25));
  EXPECT_EQ(job.found(), "inputs warning");
  const auto issues = job.rule.firing();
  EXPECT_NE(issues[0].summary.find("In evaluation input 0 has a mean that is 0.4"),
            std::string::npos)
      << issues[0].summary;
}

TEST(ParityWorlds, EvaluationThatIsNormalisedTwiceIsTold) {
  EXPECT_EQ(WorldJob().train(100).evaluate(25, input(-1.8, 4)).found(), "inputs warning");
}

TEST(ParityWorlds, PreparationOfTrainingInEvaluationIsToldWhereTrainingIsNotAugmented) {
  WorldJob job;
  job.tell({{"data/evaluation/train_compared", 1000}, {"data/evaluation/train_repeats", 950}});
  job.train(300).evaluate(100, input(0, 0.8));
  EXPECT_EQ(job.found(), "inputs warning");
}

TEST(ParityWorlds, AnotherMapOfLabelsIsToldByItsLossInTheFirstEpoch) {
  WorldJob job;
  job.train(100, [](double at) { return WorldBatch{.loss = 2.4 - 1.6 * at}; });
  job.evaluate(25, {.loss = 5});
  EXPECT_EQ(job.found(), "loss warning");
  EXPECT_NE(job.rule.firing()[0].summary.find("the best constant answer 2.3"), std::string::npos);
}

TEST(ParityWorlds, AnEvaluationOfOneClassHasOtherTargets) {
  WorldJob job;
  job.train(100, {.shares = {0.25, 0.25, 0.25, 0.25}});
  EXPECT_EQ(job.evaluate(25, {.shares = {1, 0, 0, 0}}).found(), "targets info");
}

TEST(ParityWorlds, AnEvaluationFarBetterThanTrainingIsNamed) {
  WorldJob job;
  job.train(100, {.loss = 1.9}).evaluate(25, {.loss = 0.1}).train(40, {.loss = 1.8});
  EXPECT_EQ(job.found(), "reversed info");
}

// ----------------------------------------------------------------------------------- twins

TEST(ParityWorlds, AugmentationIsNoOtherWorld) {
  EXPECT_EQ(WorldJob().train(100, input(0, 0.8)).evaluate(25, input(0, 1)).found(), "") << "mixup";
  EXPECT_EQ(WorldJob().train(100, input(-0.2, 1.1)).evaluate(25, input(0, 1)).found(), "")
      << "crops with a margin";
  EXPECT_EQ(WorldJob().train(100, input(0, 0.7)).evaluate(25, input(0, 1)).found(), "inputs info")
      << "half of the pixels erased";
}

TEST(ParityWorlds, ASamplerThatDrawsClassesEvenlyIsInfo) {
  WorldJob job;
  job.train(100, {.mean = 0.5, .shares = {0.5, 0.5}});
  EXPECT_EQ(job.evaluate(50, {.shares = {0.97, 0.03}}).found(), "targets info, inputs info");
}

TEST(ParityWorlds, SortedEvaluationSetsAndPatientsVaryByThemselves) {
  // Whole classes in a row, whose means differ by far.
  const auto sorted = [](double at) { return input(at < 0.5 ? -1 : 1, 0.5); };
  const auto mixed = [](double) { return input(0, std::sqrt(1.25)); };
  EXPECT_EQ(WorldJob().train(100, mixed).evaluate(40, sorted).found(), "");
  const auto patients = [](double at) {
    constexpr std::array<double, 5> kMeans{0.9, -0.5, 0.8, 0.4, 0.6};
    return input(kMeans[static_cast<std::size_t>(at * 5)], 1);
  };
  EXPECT_EQ(WorldJob().train(100, input(0, 1.1)).evaluate(50, patients).found(), "");
}

TEST(ParityWorlds, ACurriculumGoesWhereEvaluationIs) {
  const auto growing = [](double at) { return input(at - 0.5, 0.6 + 0.4 * at); };
  EXPECT_EQ(WorldJob().train(400, growing).evaluate(25, input(0.3, 1)).found(), "");
}

TEST(ParityWorlds, DropoutMakesTrainingWorseAndBatchNormEvaluationForOnce) {
  EXPECT_EQ(WorldJob().train(100, {.loss = 1}).evaluate(25, {.loss = 0.45}).train(40).found(), "");
  WorldJob job;
  job.tell({{"world/averages", 1}});
  job.train(100, {.loss = 1}).evaluate(25, {.loss = 6});
  job.train(100, {.loss = 0.9}).evaluate(25, {.loss = 1});
  EXPECT_EQ(job.found(), "");
  WorldJob stays;
  stays.tell({{"world/averages", 1}});
  stays.train(100, {.loss = 1}).evaluate(25, {.loss = 6});
  stays.train(100, {.loss = 0.9}).evaluate(25, {.loss = 6});
  EXPECT_EQ(stays.found(), "loss warning");
}

TEST(ParityWorlds, AveragedWeightsLieBetweenTheFirstAndTheNewest) {
  WorldJob job;
  job.train(100, [](double at) { return WorldBatch{.loss = 2.8 - 2.3 * at}; });
  EXPECT_EQ(job.evaluate(25, {.loss = 2.4}).found(), "")
      << "worse than a constant, as training was";
}

TEST(ParityWorlds, OverfittingOfLaterEpochsIsNoOtherWorld) {
  WorldJob job;
  job.tell({{"world/passes", 5}});
  job.train(100, {.loss = 0.1}).evaluate(25, {.loss = 4});
  EXPECT_EQ(job.found(), "");
}

TEST(ParityWorlds, WhatIsMeantIsNotTold) {
  WorldJob job("{shifted: true}");
  EXPECT_EQ(job.train(100).evaluate(25, input(5, 1)).found(), "");
}

TEST(ParityWorlds, OneBatchOfEvaluationIsJudgedByTheSpreadOfTrainings) {
  WorldJob far;
  far.train(100).evaluate(1, {.mean = 1, .deviation = 0.25, .rows = 256});
  far.train(2);
  EXPECT_EQ(far.found(), "inputs warning");
  WorldJob few;
  few.train(100).evaluate(1, {.mean = 1.2, .rows = 2});
  few.train(2);
  EXPECT_EQ(few.found(), "") << "two rows may lie anywhere";
}

TEST(ParityWorlds, WithoutAnEvaluationThereIsNothingToSumUp) {
  WorldJob job;
  job.train(100);
  job.end();
  EXPECT_EQ(summed_up(job.rule), "{}") << "the run card says: no evaluation so far";
}

// --------------------------------------------------------------------- null streams, power

/// One run whose training and evaluation are of one world.
struct NullRun {
  static constexpr std::array<const char*, 6> kStreams{
      "independent", "alike neighbours", "epochs", "heavy tails", "drift", "sorted evaluation"};
  std::size_t kind;
  Noise noise;
  double before = 0;

  std::vector<double> epoch;
  std::size_t next = 0;

  NullRun(std::size_t its_kind, std::uint64_t seed) : kind(its_kind), noise(seed) {
    for (int i = 0; i < 400; ++i) epoch.push_back(noise.normal());
  }
  double value(double at, bool evaluates) {
    switch (kind) {
      case 1:
        return before = 0.5 * before + noise.normal();
      case 2:  // training without replacement; evaluation is drawn anew, of the same world
        if (evaluates) return epoch[noise.bits() % epoch.size()];
        if (next == 0) noise.shuffle(epoch);
        next = (next + 1) % epoch.size();
        return epoch[next];
      case 3:
        return noise.heavy();
      case 4:  // evaluation is where training has come to
        return noise.normal() + (evaluates ? 2.0 : 4 * at);
      case 5:
        return noise.normal() +
               (evaluates ? 4 * (at < 0.5 ? -0.5 : 0.5) : 4 * (noise.uniform() < 0.5 ? -0.5 : 0.5));
      default:
        return noise.normal();
    }
  }
};

int told_of(std::size_t kind, double seen, double shift, int runs, int steps, int batches) {
  constexpr int kRows = 8;
  const WorldBounds bounds{.moved = 0};  // without any margin: the hardest case
  int told = 0;
  for (int run = 0; run < runs; ++run) {
    NullRun world(kind, static_cast<std::uint64_t>(run) * 16 + kind);
    WorldCourse course;
    const auto sums = [&](double at, bool evaluates) {
      double mean = 0;
      double square = 0;
      for (int i = 0; i < kRows; ++i) {
        const double x = world.value(at, evaluates) + (evaluates ? shift : 0);
        mean += x / kRows;
        square += x * x / kRows;
      }
      WorldSums out;
      out.sums = {1, 1, kRows, mean, square, mean * mean, 0, square * square, 0};
      return out;
    };
    for (int step = 0; step < steps; ++step) {
      const WorldSums batch = sums(static_cast<double>(step) / steps, false);
      if (world.noise.uniform() < seen) course.add_train(batch, step);
    }
    double last_mean = NAN;
    double last_square = NAN;
    for (int i = 0; i < batches; ++i) {
      WorldSums batch = sums(static_cast<double>(i) / batches, true);
      const double mean = batch[WorldSums::mean];
      const double square = batch[WorldSums::square];
      batch.sums[WorldSums::mean_lagged] = mean * (i == 0 ? mean : last_mean);
      batch.sums[WorldSums::square_lagged] = square * (i == 0 ? square : last_square);
      course.pass.add(batch);
      last_mean = mean;
      last_square = square;
    }
    course.compare(true);
    told += course.gap.hit(bounds, 1) ? 1 : 0;
  }
  return told;
}

TEST(ParityWorlds, NullStreamsAreHardlyEverTold) {
  constexpr int kRuns = 300;
  for (std::size_t kind = 0; kind < NullRun::kStreams.size(); ++kind) {
    std::array<int, 3> told{};
    constexpr std::array<double, 3> kSeen{1, 0.1, 0.03};
    for (std::size_t i = 0; i < kSeen.size(); ++i)
      told[i] = told_of(kind, kSeen[i], 0, kRuns, 2000, 24);
    std::cout << "worlds, " << NullRun::kStreams[kind] << ": " << told[0] << ", " << told[1] << ", "
              << told[2] << " of " << kRuns << " runs\n";
    for (const int number : told) EXPECT_LE(number, 0.001 * kRuns + 3 * std::sqrt(0.001 * kRuns));
  }
}

TEST(ParityWorlds, ShiftsAreToldFromTheSizeThatTheErrorSays) {
  // 8 rows a batch: deviation of a batch's mean 0.35; 24 of evaluation and 1000 of training: error 0.073, widened for
  // neighbours 0.09. 8 errors are 0.6 to 0.75.
  constexpr int kRuns = 100;
  EXPECT_EQ(told_of(0, 1, 0.3, kRuns, 2000, 24), 0);
  EXPECT_GE(told_of(0, 1, 1.2, kRuns, 2000, 32), 95);
  EXPECT_GE(told_of(0, 1, 0.6, kRuns, 2000, 192), 95)
      << "with eight times as many batches half as much";
}

}  // namespace
}  // namespace tocsin::rules
