#include <gmock/gmock.h>

#include "tests/support/statistic_harness.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using core::VectorStat;
using ::testing::ElementsAre;
using testing_support::measure;
using testing_support::statistic_of;
using testing_support::Tensor;

TEST(Values, EachIsCounted) {
  const Tensor<std::int64_t> tokens{Dtype::i64, {0, 5, 0, 7, 7, 0}, {2, 3}};
  const auto given = measure(*statistic_of("values", {0, 7, 9}), tokens);
  EXPECT_THAT(given.at(VectorStat::value_counts), ElementsAre(3, 2, 0));
  EXPECT_THAT(given.vector_parameters.at(VectorStat::value_counts), ElementsAre(0, 7, 9));
}

TEST(Values, TokensStoredAsFloatsMatchWithinAMillionth) {
  const Tensor<float> tokens{Dtype::f32, {1.0000005F, 1.00001F, NAN}};
  EXPECT_THAT(measure(*statistic_of("values", {1}), tokens).at(VectorStat::value_counts),
              ElementsAre(1));
}

}  // namespace
}  // namespace tocsin::collectors
