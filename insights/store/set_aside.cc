#include "insights/store/set_aside.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "insights/store/database.h"

namespace tocsin::insights {
namespace {

namespace fs = std::filesystem;

constexpr int kMostKept = 3;

// What no database can be: SQLite says of a folder only that it cannot be opened, and takes an empty
// file for a new one.
std::string evident_damage(const std::string& path) {
  std::error_code missing;
  if (fs::is_directory(path, missing)) return "a folder is in its place";
  const bool empty = fs::is_regular_file(path, missing) && fs::file_size(path, missing) == 0;
  return empty && !missing ? "the file is empty" : "";
}

bool is_of_another(const core::Error& error) {
  return error.code == core::Code::failed_precondition &&
         (error.message.starts_with("its tables") ||
          error.message.starts_with("it is of another place"));
}

}  // namespace

SetAside set_store_aside(const std::string& path, std::string why, bool damaged) {
  SetAside out{std::move(why), path + (damaged ? ".damaged" : ".aside"), "", damaged};
  const std::string first = out.moved_to;
  std::error_code failed;
  for (int at = 2; at <= kMostKept && fs::exists(out.moved_to, failed); ++at)
    out.moved_to = first + "." + std::to_string(at);
  if (fs::exists(out.moved_to, failed)) {
    out.replaced = out.moved_to;
    fs::remove_all(out.moved_to, failed);
  }
  fs::rename(path, out.moved_to, failed);
  if (failed) {
    out.why += "; it cannot be moved: " + failed.message();
    out.moved_to.clear();
    return out;
  }
  fs::remove(out.moved_to + "-wal", failed);
  fs::rename(path + "-wal", out.moved_to + "-wal", failed);
  fs::remove(path + "-shm", failed);
  return out;
}

core::Result<std::unique_ptr<StoreDatabase>> open_or_begin_anew(const std::string& path,
                                                                const std::string& condemned,
                                                                OpenStore open, SetAside& moved) {
  const std::string evident = evident_damage(path);
  if (!evident.empty() || !condemned.empty()) {
    moved = set_store_aside(path, evident.empty() ? condemned : evident, true);
    if (moved.moved_to.empty()) return core::unavailable(path + ": " + moved.why);
  }
  auto opened = open();
  if (opened) return opened;
  const bool damaged = opened.error().code == core::Code::data_loss;
  if (!damaged && !is_of_another(opened.error())) return opened;
  moved = set_store_aside(path, opened.error().message, damaged);
  if (moved.moved_to.empty()) return core::unavailable(path + ": " + moved.why);
  return open();
}

}  // namespace tocsin::insights
