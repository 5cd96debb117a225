// The statistics kernel beside a plain sum of the same bytes, in the same run.
//
// usage: reduce_bench [rounds] [largest MiB]
// One line per figure: name value unit ratio baseline target pass|miss. Kernel and baseline take
// turns and the best of each counts, so that what else the machine does hits both. Times are this
// thread's processor time. Targets: docs/statistics.md.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "collectors/collectors.h"

namespace tocsin::bench {

float plain_sum(const float* data, std::size_t count);

namespace {

using core::Dtype;

volatile double sink;  // keeps results alive

double seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Pair {
  double kernel = 0;  // GB/s
  double plain = 0;
};

// Best bandwidths over `rounds` turns; small buffers are read several times per turn.
template <typename Kernel>
Pair measure(const std::vector<float>& data, std::size_t bytes, int rounds, Kernel kernel) {
  const std::size_t times = std::max<std::size_t>(1, (std::size_t{4} << 20) / bytes);
  const double total = static_cast<double>(bytes * times) / 1e9;
  Pair best;
  for (int round = 0; round < rounds; ++round) {
    double start = seconds();
    for (std::size_t i = 0; i < times; ++i) {
      sink = static_cast<double>(plain_sum(data.data(), bytes / sizeof(float)));
    }
    best.plain = std::max(best.plain, total / (seconds() - start));
    start = seconds();
    for (std::size_t i = 0; i < times; ++i) kernel(bytes);
    best.kernel = std::max(best.kernel, total / (seconds() - start));
  }
  return best;
}

std::string size_text(std::size_t bytes) {
  return bytes >= (1U << 20) ? std::to_string(bytes >> 20) + "MiB"
                             : std::to_string(bytes >> 10) + "KiB";
}

void line(const std::string& name, const Pair& pair, double target) {
  const double ratio = pair.kernel / pair.plain;
  std::printf("%-34s %8.1f GB/s ratio %5.2f baseline %7.1f ", name.c_str(), pair.kernel, ratio,
              pair.plain);
  if (target > 0) {
    std::printf("target >=%.2f %s\n", target, ratio >= target ? "pass" : "miss");
  } else {
    std::printf("target - -\n");
  }
  std::fflush(stdout);
}

// Bits of a bfloat16 or binary16 near ±0.02, as weights are.
std::vector<std::uint16_t> half_words(std::size_t n, Dtype dtype) {
  std::mt19937 generator(3);
  std::vector<std::uint16_t> words(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto bits = static_cast<std::uint16_t>(generator() & 0x83FFU);
    words[i] = static_cast<std::uint16_t>(bits | (dtype == Dtype::bf16 ? 0x3C00U : 0x2400U));
  }
  return words;
}

int run(int rounds, std::size_t largest) {
  std::vector<float> data(largest / sizeof(float));
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0, 0.02F);
  const std::size_t drawn = std::min(data.size(), std::size_t{1} << 20);
  for (std::size_t i = 0; i < drawn; ++i) data[i] = normal(generator);
  for (std::size_t i = drawn; i < data.size(); ++i) data[i] = data[i - drawn];
  const auto reduce_as = [&](Dtype dtype, const void* from) {
    return [dtype, from](std::size_t bytes) {
      sink = collectors::reduce(dtype, from, bytes / core::size_of(dtype)).m2;
    };
  };
  collectors::force_reduce_target(0);
  std::printf("target %s\n", collectors::reduce_target());
  for (const std::size_t bytes :
       {std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{16} << 20, largest}) {
    const bool from_memory = bytes >= (std::size_t{256} << 20);
    const int turns = from_memory ? std::max(3, rounds / 4) : rounds;
    const std::string size = "_" + size_text(bytes);
    line("reduce_f32" + size, measure(data, bytes, turns, reduce_as(Dtype::f32, data.data())),
         from_memory ? 0.75 : 0);
    for (const Dtype dtype : {Dtype::bf16, Dtype::f16}) {
      const auto words = half_words(bytes / 2, dtype);
      line("reduce_" + std::string(core::to_string(dtype)) + size,
           measure(data, bytes, turns, reduce_as(dtype, words.data())), 0);
    }
    for (const Dtype dtype : {Dtype::i8, Dtype::i32}) {
      line("reduce_" + std::string(core::to_string(dtype)) + size,
           measure(data, bytes, turns, reduce_as(dtype, data.data())), 0);
    }
    std::vector<double> doubles(bytes / sizeof(double));
    for (std::size_t i = 0; i < doubles.size(); ++i) doubles[i] = static_cast<double>(data[i]);
    line("reduce_f64" + size, measure(data, bytes, turns, reduce_as(Dtype::f64, doubles.data())),
         0);
    std::vector<float> broken(data.begin(),
                              data.begin() + static_cast<std::ptrdiff_t>(bytes / sizeof(float)));
    for (std::size_t i = 0; i < broken.size(); i += 4096) broken[i] = NAN;
    line("reduce_f32_nan_in_every_block" + size,
         measure(data, bytes, turns, reduce_as(Dtype::f32, broken.data())), 0);
    line("delta_f32" + size,
         measure(
             data, bytes, turns,
             [&](std::size_t n) {
               const std::size_t half = n / 2 / sizeof(float);
               sink = collectors::delta(Dtype::f32, data.data(), data.data() + half, half).delta_l2;
             }),
         0);
  }
  for (const std::int64_t target : collectors::reduce_targets()) {
    collectors::force_reduce_target(target);
    const std::size_t bytes = std::size_t{1} << 20;
    line("reduce_f32_1MiB_" + collectors::reduce_target_name(target),
         measure(data, bytes, rounds, reduce_as(Dtype::f32, data.data())), 0);
  }
  collectors::force_reduce_target(0);
  return 0;
}

}  // namespace
}  // namespace tocsin::bench

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 40;
  const std::size_t mib =
      argc > 2 ? static_cast<std::size_t>(std::max(16, std::atoi(argv[2]))) : 256;
  return tocsin::bench::run(rounds, mib << 20);
}
