#include "app/printable.h"

#include "core/visible_text.h"

namespace tocsin::app {

std::string printable(std::string_view text) { return core::visible(text); }

}  // namespace tocsin::app
