// Who asks, as far as the machine knows.
#pragma once

#include <string>

namespace tocsin::app {

/// "ada@node-7"
std::string this_person();

}  // namespace tocsin::app
