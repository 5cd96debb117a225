#include "app/serve/local_token.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "app/serve/access.h"
#include "core/identity.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kRandomBytes = 32;
constexpr std::size_t kShortestLocalToken = 16;

std::string fresh_token() {
  std::array<std::uint8_t, kRandomBytes> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  return core::base32(bytes);
}

core::Error cannot_make(const std::string& path) {
  return core::unavailable(path + ": cannot be made: " + std::strerror(errno));
}

// Whole or not at all: a process that is killed leaves no half token.
core::Status write_token(const std::string& path) {
  const std::string token = fresh_token() + "\n";
  const std::string beside = path + "." + std::to_string(getpid());
  const int file = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return cannot_make(path);
  const bool written =
      write(file, token.data(), token.size()) == static_cast<ssize_t>(token.size());
  const bool closed = close(file) == 0;
  if (written && closed && rename(beside.c_str(), path.c_str()) == 0) return core::ok();
  const core::Error out = cannot_make(path);
  unlink(beside.c_str());
  return out;
}

}  // namespace

core::Result<std::string> add_local_token(AccessConfig& access, std::string_view listen,
                                          const std::string& folder) {
  if (!access.tokens.empty() || access.proxy || !listens_on_loopback(listen)) return std::string();
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const std::string path = folder + "/page-token";
  const auto known = config::Secret::from_file(path).reveal();
  if (!known || known->size() < kShortestLocalToken) {
    if (const auto made = write_token(path); !made) return made.error();
  }
  access.tokens.push_back({"local", ApiRole::admin, config::Secret::from_file(path)});
  return path;
}

}  // namespace tocsin::app
