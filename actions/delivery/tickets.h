// Numbers that say what came first. Internal to actions.
#pragma once

#include <cstdint>

namespace tocsin::actions {

/// One number per waiting message and per digest, growing; never 0.
class Tickets {
 public:
  std::uint64_t next() { return ++last_; }

 private:
  std::uint64_t last_ = 0;
};

}  // namespace tocsin::actions
