#include "rules/native/library.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/json.h"

namespace tocsin::rules::native {
namespace {

constexpr std::size_t kMostDescription = 65536;

core::Status check_place(const std::string& path) {
  struct stat what {};
  if (stat(path.c_str(), &what) != 0) {
    return core::invalid_argument(path + ": " + std::strerror(errno));
  }
  if (!S_ISREG(what.st_mode)) return core::invalid_argument(path + " is no file");
  if ((what.st_mode & S_IWOTH) != 0) {
    return core::invalid_argument(path + " may be written by everybody: chmod o-w");
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (stat(folder.c_str(), &what) != 0) {
    return core::invalid_argument(folder + ": " + std::strerror(errno));
  }
  if ((what.st_mode & S_IWOTH) != 0 && (what.st_mode & S_ISVTX) == 0) {
    return core::invalid_argument(folder + " may be written by everybody: chmod o-w");
  }
  return core::ok();
}

template <typename Function>
core::Status find(void* handle, const char* name, const std::string& path, Function& out) {
  out = reinterpret_cast<Function>(dlsym(handle, name));
  if (out != nullptr) return core::ok();
  return core::invalid_argument(path + " has no function " + name);
}

}  // namespace

core::Result<std::shared_ptr<const Library>> load_library(const std::string& path) {
  if (!std::filesystem::path(path).is_absolute()) {
    return core::invalid_argument("\"" + path + "\" is no absolute path");
  }
  std::error_code ignored;
  const std::filesystem::path real = std::filesystem::canonical(path, ignored);
  const std::string file = ignored ? path : real.string();
  if (auto status = check_place(file); !status) return status.error();
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return core::invalid_argument(why != nullptr ? why : file + " cannot be loaded");
  }
  auto out = std::make_shared<Library>();
  out->path = file;
  decltype(&tocsin_rule_abi_version) version = nullptr;
  decltype(&tocsin_rule_describe) describe = nullptr;
  if (auto s = find(handle, "tocsin_rule_abi_version", file, version); !s) return s.error();
  if (const std::uint32_t built = version(); built != TOCSIN_RULE_ABI) {
    return core::invalid_argument(file + " is built for version " + std::to_string(built) +
                                  " of the ABI of rules; this program has version " +
                                  std::to_string(TOCSIN_RULE_ABI));
  }
  if (auto s = find(handle, "tocsin_rule_describe", file, describe); !s) return s.error();
  if (auto s = find(handle, "tocsin_rule_create", file, out->create); !s) return s.error();
  if (auto s = find(handle, "tocsin_rule_init", file, out->init); !s) return s.error();
  if (auto s = find(handle, "tocsin_rule_update", file, out->update); !s) return s.error();
  if (auto s = find(handle, "tocsin_rule_destroy", file, out->destroy); !s) return s.error();
  const char* text = describe();
  auto description = core::parse_json(text != nullptr ? text : "", kMostDescription);
  if (!description || core::as<core::ValueMap>(*description) == nullptr) {
    return core::invalid_argument(file + " does not describe itself: " +
                                  (description ? "no JSON object" : description.error().message));
  }
  out->description = std::move(*description);
  return std::shared_ptr<const Library>(std::move(out));
}

}  // namespace tocsin::rules::native
