#include "collectors/node/drm_cards.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace tocsin::collectors {
namespace {

namespace fs = std::filesystem;

std::string_view first_line(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// The serial number where the card has one: it is the same in any slot. Else the slot.
std::string id_of(const std::string& device) {
  ProcFile unique(device + "/unique_id");
  if (const auto text = unique.read(); text) {
    if (const std::string_view serial = first_line(*text); !serial.empty()) {
      return "AMD-" + std::string(serial);
    }
  }
  constexpr std::string_view kSlot = "PCI_SLOT_NAME=";
  ProcFile uevent(device + "/uevent");
  if (const auto text = uevent.read(); text) {
    const std::size_t at = text->find(kSlot);
    if (at != std::string_view::npos) {
      return "AMD-" + std::string(first_line(text->substr(at + kSlot.size())));
    }
  }
  return {};
}

// The first of these files below <device>/hwmon/hwmon*.
std::optional<ProcFile> sensor(const std::string& device,
                               std::initializer_list<const char*> names) {
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(device + "/hwmon", gone)) {
    for (const char* name : names) {
      const std::string file = entry.path().string() + "/" + name;
      if (fs::exists(file, gone)) return ProcFile(file);
    }
  }
  return std::nullopt;
}

}  // namespace

DrmCard::DrmCard(const std::string& folder, std::string id)
    : id_(std::move(id)),
      busy_(folder + "/gpu_busy_percent"),
      used_(folder + "/mem_info_vram_used"),
      total_(folder + "/mem_info_vram_total"),
      power_(sensor(folder, {"power1_average", "power1_input"})),
      temperature_(sensor(folder, {"temp1_input"})) {}

std::optional<double> DrmCard::number(ProcFile& file) {
  const auto text = file.read();
  if (!text) return std::nullopt;
  const std::string_view line = first_line(*text);
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), out);
  if (error != std::errc{} || end != line.data() + line.size()) return std::nullopt;
  return static_cast<double>(out);
}

std::optional<double> DrmCard::watts() {
  const auto microwatts = power_ ? number(*power_) : std::nullopt;
  return microwatts ? std::optional(*microwatts / 1e6) : std::nullopt;
}

std::optional<double> DrmCard::celsius() {
  const auto thousandths = temperature_ ? number(*temperature_) : std::nullopt;
  return thousandths ? std::optional(*thousandths / 1e3) : std::nullopt;
}

std::vector<DrmCard> drm_cards(const std::string& sys) {
  std::vector<std::string> folders;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(sys + "/class/drm", gone)) {
    const std::string name = entry.path().filename().string();
    // card0-DP-1 and the like are connectors of card0, renderD128 is card0 again.
    if (!name.starts_with("card") || name.find('-') != std::string::npos) continue;
    const std::string device = entry.path().string() + "/device";
    if (fs::exists(device + "/gpu_busy_percent", gone)) folders.push_back(device);
  }
  std::sort(folders.begin(), folders.end());
  std::vector<DrmCard> out;
  for (const std::string& folder : folders) {
    std::string id = id_of(folder);
    if (!id.empty()) out.emplace_back(folder, std::move(id));
  }
  return out;
}

}  // namespace tocsin::collectors
