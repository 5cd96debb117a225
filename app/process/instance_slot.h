// Which of several processes on one machine this is: a small number that is stable over a restart,
// so that a restarted engine takes over the transactional id, and with it the open transaction, of
// the one that died, and two living ones never share an id.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"

namespace tocsin::app {

/// Holds slot `number` of `name` until it is destroyed or the process dies (kill -9 too: it is an
/// abstract Unix socket, not a file).
class InstanceSlot {
 public:
  /// The lowest free slot. resource_exhausted: 1024 are taken.
  static core::Result<InstanceSlot> acquire(std::string_view name);
  InstanceSlot(InstanceSlot&& other) noexcept;
  InstanceSlot& operator=(InstanceSlot&& other) noexcept;
  ~InstanceSlot();
  [[nodiscard]] int number() const noexcept { return number_; }

 private:
  InstanceSlot(int descriptor, int number) : descriptor_(descriptor), number_(number) {}
  int descriptor_ = -1;
  int number_ = 0;
};

}  // namespace tocsin::app
