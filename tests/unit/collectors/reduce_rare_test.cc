// reduce() where one block of many holds what the others have not: a zero, an extreme, a number that is not finite.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "collectors/tensors/reduce.h"
#include "tests/unit/collectors/naive.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;
using naive::expect_row;
using naive::on_every_target;

constexpr std::size_t kBlocks = 6;
constexpr std::size_t kSize = kBlocks * 4096;

// Weights as most are: no zero, all below 2.
std::vector<float> ordinary(unsigned seed, double deviation = 0.02) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> distribution(0, deviation);
  std::vector<float> out(kSize);
  for (float& x : out) {
    x = static_cast<float>(distribution(generator));
    if (x == 0) x = 1e-3F;
  }
  return out;
}

void check(const std::vector<float>& x, const std::string& what) {
  const core::SummaryRow want = naive::row(Dtype::f32, naive::widened(x));
  on_every_target([&](const std::string& target) {
    const core::SummaryRow got = reduce(Dtype::f32, x.data(), x.size());
    expect_row(got, want, 1e-6, target + " " + what);
    EXPECT_FALSE(got.min == 0 && std::signbit(got.min)) << target + " " + what;
    EXPECT_FALSE(got.max == 0 && std::signbit(got.max)) << target + " " + what;
  });
}

TEST(ReduceRare, FindsTheOneElementThatIsUnlikeTheRest) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::mt19937 generator(5);
  for (const float rare : {0.0F, -0.0F, 1e-40F, -1e-40F, 1e-20F, -1e-20F, 1.999F, 2.0F, -2.0F, 5.0F,
                           -1e30F, 3e38F, kInf, -kInf, std::nanf("")}) {
    for (std::size_t block = 0; block < kBlocks; ++block) {
      std::vector<float> x = ordinary(static_cast<unsigned>(block));
      const std::size_t at = block * 4096 + generator() % 4096;
      x[at] = rare;
      check(x, std::to_string(rare) + " at " + std::to_string(at));
    }
  }
}

TEST(ReduceRare, ZerosOfBothSignsInSomeBlocks) {
  std::mt19937 generator(6);
  for (unsigned seed = 0; seed < 8; ++seed) {
    std::vector<float> x = ordinary(seed);
    for (std::size_t block = 0; block < kBlocks; ++block) {
      const std::size_t zeros = block % 2 == seed % 2 ? 1 + generator() % 3000 : 0;
      for (std::size_t i = 0; i < zeros; ++i) {
        x[block * 4096 + generator() % 4096] = generator() % 2 == 0 ? 0.0F : -0.0F;
      }
    }
    check(x, "seed " + std::to_string(seed));
  }
}

TEST(ReduceRare, ExtremesThatCreepBlockByBlock) {
  for (const int way : {-2, -1, 1, 2}) {
    std::vector<float> grows = ordinary(1);
    for (std::size_t i = 0; i < kSize; ++i) {
      grows[i] *= 1 + static_cast<float>(i / 4096);  // every block reaches farther
      if (std::abs(way) == 2)
        grows[i] = std::fabs(grows[i]) + 1e-6F;  // of one sign: the other end is next to 0
      if (way < 0) grows[i] = -grows[i];
    }
    check(grows, "grows " + std::to_string(way));
    std::vector<float> shrinks(grows.rbegin(), grows.rend());
    check(shrinks, "shrinks " + std::to_string(way));
  }
}

TEST(ReduceRare, AConstantBlockAmongOthers) {
  for (const float constant : {0.01F, -0.01F, 1e-18F, 0.0F, -0.0F}) {
    for (std::size_t block = 0; block < kBlocks; ++block) {
      std::vector<float> x = ordinary(3);
      for (std::size_t i = 0; i < 4096; ++i) x[block * 4096 + i] = constant;
      check(x, "constant " + std::to_string(constant) + " in block " + std::to_string(block));
    }
    check(std::vector<float>(kSize, constant), "all " + std::to_string(constant));
  }
}

TEST(ReduceRare, NumbersOfEveryMagnitude) {
  for (const double deviation : {1e-30, 1e-19, 1e-12, 0.5, 1.0, 3.0, 1e6, 1e20, 1e37}) {
    check(ordinary(9, deviation), "deviation " + std::to_string(deviation));
  }
}

TEST(ReduceRare, ShortTails) {
  const std::vector<float> base = ordinary(4);
  for (std::size_t off = 0; off <= 70; ++off) {
    std::vector<float> x(base.begin(), base.end() - static_cast<std::ptrdiff_t>(off));
    check(x, "less " + std::to_string(off));
    x.back() = -0.0F;
    check(x, "-0 at the end, less " + std::to_string(off));
    x.back() = -1.5F;
    check(x, "the least at the end, less " + std::to_string(off));
  }
}

}  // namespace
}  // namespace tocsin::collectors
