#include "routing/times/zone_names.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>
#include <vector>

#include "core/text.h"

namespace tocsin::routing {
namespace {

constexpr std::size_t kLongestZone = 64;
/// Every zone and alias, one a line: "Z Europe/Berlin …", "L Europe/Berlin Arctic/Longyearbyen".
constexpr const char* kZoneList = "/usr/share/zoneinfo/tzdata.zi";

std::vector<std::string> zone_names() {
  std::vector<std::string> out;
  std::ifstream in(kZoneList);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string kind;
    std::string name;
    words >> kind >> name;
    if (kind == "L") words >> name;
    if (kind == "L" || kind == "Z") out.push_back(name);
  }
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

bool may_be_zone(std::string_view name) noexcept {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '_' || c == '-' || c == '+';
  };
  return !name.empty() && name.size() <= kLongestZone && name.front() != '/' &&
         name != "localtime" && std::all_of(name.begin(), name.end(), allowed);
}

std::string nearest_zone(const std::string& name) {
  const std::vector<std::string> names = zone_names();
  const std::string wanted = lower(name);
  for (const std::string& zone : names) {
    if (lower(zone) == wanted || lower(zone).ends_with("/" + wanted)) return zone;
  }
  return core::nearest(name, names);
}

}  // namespace tocsin::routing
