#include "app/report/page_file.h"

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace tocsin::app::report {

std::string page_name(const core::RunRef& run) {
  constexpr std::size_t kLongest = 100;
  std::string out = (run.job.empty() ? "run" : run.job).substr(0, kLongest);
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte < 0x80 && (std::isalnum(byte) != 0 || c == '-' || c == '_');
    if (!plain) c = '_';
  }
  return out + "-" + core::to_text(run.uid).substr(0, 8) + "-" + std::to_string(run.attempt) +
         ".html";
}

core::Status write_page(const std::string& path, std::string_view text) {
  const auto failed = [&] {
    return core::Error{core::Code::unavailable,
                       path + " cannot be written: " + std::strerror(errno)};
  };
  const std::string part = path + ".part";
  {
    errno = 0;
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    file << text;
    file.flush();
    if (!file) return failed();
  }
  if (std::rename(part.c_str(), path.c_str()) != 0) return failed();
  return core::ok();
}

}  // namespace tocsin::app::report
