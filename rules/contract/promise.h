// What a training loop says of its own: when it will be heard of again (hook.report_progress).
#pragma once

#include <cstdint>

#include "rules/contract/archive.h"

namespace tocsin::rules {

struct Promise {
  std::int64_t at = 0;      // engine time
  std::int64_t within = 0;  // ns from then on; 0: nothing was promised

  template <typename A>
  friend void io(A& a, Promise& p) {
    io_all(a, p.at, p.within);
  }
};

}  // namespace tocsin::rules
