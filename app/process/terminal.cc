#include "app/process/terminal.h"

#include <fcntl.h>
#include <unistd.h>

namespace tocsin::app {
namespace {

// The kernel takes the terminal from every process of a session when it hangs up: from then on this
// name opens nothing.
bool has_terminal() {
  const int file = open("/dev/tty", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return false;
  close(file);
  return true;
}

}  // namespace

ControllingTerminal::ControllingTerminal() : had_one_(has_terminal()) {}

bool ControllingTerminal::closed() const { return had_one_ && !has_terminal(); }

}  // namespace tocsin::app
