// The machine in two halves: one for what makes load and looks, one for who is measured, so that
// nobody is timed while it waits for the generator's slice of a core.
#pragma once

#include <sched.h>

#include <utility>
#include <vector>

namespace tocsin::bench {

enum class Half { world, contender };

/// Threads made from now on by this thread stay, as it does itself, on one half of the cores that the
/// process was given: the world on the first, the contender on the second. With fewer than four, and
/// where the system refuses, nothing changes and the answer is false.
inline bool stay_on(Half half) {
  static const std::vector<int> cores = [] {
    std::vector<int> out;
    cpu_set_t given;
    if (sched_getaffinity(0, sizeof given, &given) != 0) return out;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &given)) out.push_back(core);
    }
    return out;
  }();
  if (cores.size() < 4) return false;
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  const std::size_t middle = cores.size() / 2;
  const auto [from, to] = half == Half::world ? std::pair<std::size_t, std::size_t>{0, middle}
                                              : std::pair{middle, cores.size()};
  for (std::size_t i = from; i < to; ++i) CPU_SET(cores[i], &wanted);
  return sched_setaffinity(0, sizeof wanted, &wanted) == 0;
}

}  // namespace tocsin::bench
