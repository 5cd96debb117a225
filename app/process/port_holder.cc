#include "app/process/port_holder.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

namespace tocsin::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kListening = "0A";

// Inodes of the sockets that listen on the port: /proc/net/tcp has "0100007F:2620" for 127.0.0.1:9760.
void add_sockets(const std::string& table, std::uint16_t port, std::set<std::string>& out) {
  std::ifstream in(table);
  std::string line;
  std::getline(in, line);  // names of the columns
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::vector<std::string> columns;
    for (std::string word; words >> word;) columns.push_back(word);
    if (columns.size() < 10 || columns[3] != kListening) continue;
    const std::size_t colon = columns[1].rfind(':');
    std::uint16_t found = 0;
    const char* begin = columns[1].data() + colon + 1;
    const char* end = columns[1].data() + columns[1].size();
    if (colon == std::string::npos || std::from_chars(begin, end, found, 16).ptr != end) continue;
    if (found == port) out.insert("socket:[" + columns[9] + "]");
  }
}

bool holds_one(const fs::path& process, const std::set<std::string>& sockets) {
  std::error_code error;
  for (fs::directory_iterator at(process / "fd", error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    if (sockets.contains(fs::read_symlink(at->path(), gone).string())) return true;
  }
  return false;
}

}  // namespace

std::string port_holder(std::uint16_t port, const std::string& proc) {
  std::set<std::string> sockets;
  add_sockets(proc + "/net/tcp", port, sockets);
  add_sockets(proc + "/net/tcp6", port, sockets);
  if (sockets.empty()) return {};
  std::error_code error;
  for (fs::directory_iterator at(proc, error), end; !error && at != end; at.increment(error)) {
    const std::string pid = at->path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!holds_one(at->path(), sockets)) continue;
    std::string name;
    std::getline(std::ifstream(at->path() / "comm"), name);
    return "pid " + pid + (name.empty() ? "" : " (" + name + ")");
  }
  return {};
}

}  // namespace tocsin::app
