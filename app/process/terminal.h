// The terminal that a process was started from.
#pragma once

namespace tocsin::app {

/// Tells SIGHUP of a closed terminal, which ends a process, from one that somebody sent, which makes
/// a server read its configuration again. One thread.
class ControllingTerminal {
 public:
  /// Looks whether there is one now.
  ControllingTerminal();
  /// There was one, and it is gone.
  [[nodiscard]] bool closed() const;

 private:
  bool had_one_;
};

}  // namespace tocsin::app
