#include "app/process/version.h"

#include "core/version.h"

namespace tocsin::app {

std::string build_version() { return std::string(core::version()); }

std::string build_compiler() {
#if defined(__clang__)
  return "clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__) + "." +
         std::to_string(__clang_patchlevel__);
#else
  return "gcc " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__) + "." +
         std::to_string(__GNUC_PATCHLEVEL__);
#endif
}
std::string version_text() { return std::string("tocsin ") + build_version(); }

}  // namespace tocsin::app
