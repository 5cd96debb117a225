#include "collectors/node/procfs.h"

#include <cctype>

#include "collectors/node/text_fields.h"

namespace tocsin::collectors {
namespace {

bool all_digits(std::string_view text) noexcept {
  if (text.empty()) return false;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
  }
  return true;
}

std::string_view without_digits(std::string_view text) noexcept {
  while (!text.empty() && text.back() >= '0' && text.back() <= '9') text.remove_suffix(1);
  return text;
}

}  // namespace

void parse_cpu_times(std::string_view text, std::vector<CpuTimes>& out) {
  out.clear();
  while (!text.empty()) {
    std::string_view line = take_line(text);
    const std::string_view name = take_word(line);
    if (name.substr(0, 3) != "cpu") break;  // the processors come first
    const auto cpu = to_u64(name.substr(3));
    if (!cpu || *cpu > 0xFFFF) continue;  // "cpu": all of them together
    CpuTimes times;
    times.cpu = static_cast<std::uint32_t>(*cpu);
    std::size_t read = 0;
    for (; read < kCpuModes; ++read) {
      const auto ticks = take_u64(line);
      if (!ticks) break;
      times.ticks[read] = *ticks;
    }
    if (read > static_cast<std::size_t>(CpuMode::idle)) out.push_back(times);
  }
}

Meminfo parse_meminfo(std::string_view text) {
  Meminfo out;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    const std::string_view key = take_word(line);
    std::optional<std::uint64_t>* field = key == "MemTotal:"       ? &out.total
                                          : key == "MemFree:"      ? &out.free
                                          : key == "MemAvailable:" ? &out.available
                                          : key == "Buffers:"      ? &out.buffers
                                          : key == "Cached:"       ? &out.cached
                                          : key == "SReclaimable:" ? &out.slab_reclaimable
                                                                   : nullptr;
    if (field == nullptr) continue;
    const auto kibibytes = take_u64(line);
    if (kibibytes && take_word(line) == "kB") *field = *kibibytes * 1024;
  }
  return out;
}

void parse_interfaces(std::string_view text, std::vector<InterfaceBytes>& out) {
  out.clear();
  while (!text.empty()) {
    std::string_view line = take_line(text);
    // Old kernels write no blank behind the colon, and alias names hold colons of their own.
    const std::size_t colon = line.rfind(':');
    if (colon == std::string_view::npos) continue;  // the two head lines
    std::string_view before = line.substr(0, colon);
    std::string_view columns = line.substr(colon + 1);
    const std::string_view name = take_word(before);
    const auto received = take_u64(columns);
    for (int skipped = 0; skipped < 7; ++skipped) take_word(columns);
    const auto transmitted = take_u64(columns);
    if (!name.empty() && received && transmitted) out.push_back({name, *received, *transmitted});
  }
}

void parse_disks(std::string_view text, std::vector<DiskBytes>& out) {
  constexpr std::uint64_t kSector = 512;
  out.clear();
  while (!text.empty()) {
    std::string_view line = take_line(text);
    take_word(line);  // major
    take_word(line);  // minor
    const std::string_view name = take_word(line);
    take_word(line);  // reads
    take_word(line);  // reads merged
    const auto read = take_u64(line);
    take_word(line);  // ms reading
    take_word(line);  // writes
    take_word(line);  // writes merged
    const auto written = take_u64(line);
    if (!name.empty() && read && written)
      out.push_back({name, *read * kSector, *written * kSector});
  }
}

bool is_whole_disk(std::string_view name) noexcept {
  const std::string_view stem = without_digits(name);
  for (const std::string_view prefix : {"ram", "zram", "loop", "fd"}) {
    if (stem == prefix) return false;
  }
  if (stem.empty() || stem.size() == name.size()) return true;
  // nvme0n1p2, mmcblk0p1, nbd0p1, loop0p1: a p between two numbers.
  if (stem.back() == 'p' && stem.size() > 1 && all_digits(stem.substr(stem.size() - 2, 1))) {
    return false;
  }
  // sda1, vdb2, hda1, xvda1: letters and then a number.
  for (const std::string_view prefix : {"sd", "hd", "vd", "xvd"}) {
    if (stem.size() > prefix.size() && stem.substr(0, prefix.size()) == prefix) return false;
  }
  return true;
}

std::optional<ProcessIo> parse_process_io(std::string_view text) {
  const auto read = parse_keyed(text, "read_bytes:");
  const auto written = parse_keyed(text, "write_bytes:");
  if (!read || !written) return std::nullopt;
  return ProcessIo{*read, *written};
}

std::optional<std::uint32_t> count_cpu_list(std::string_view text) {
  std::uint64_t count = 0;
  std::string_view list = take_line(text);
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(item.size() == list.size() ? item.size() : item.size() + 1);
    const std::size_t dash = item.find('-');
    const auto first = to_u64(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : to_u64(item.substr(dash + 1));
    if (!first || !last || *last < *first || *last > 0xFFFF) return std::nullopt;
    count += *last - *first + 1;
  }
  if (count == 0) return std::nullopt;
  return static_cast<std::uint32_t>(count);
}

std::optional<std::uint64_t> parse_keyed(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (take_word(line) == key) return take_u64(line);
  }
  return std::nullopt;
}

std::optional<double> parse_cpu_max(std::string_view text) {
  std::string_view line = take_line(text);
  const auto quota = take_u64(line);
  const auto period = take_u64(line);
  if (!quota || !period || *period == 0 || *quota == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<std::string_view> parse_cgroup_path(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.substr(0, 3) == "0::" && line.size() > 3) return line.substr(3);
  }
  return std::nullopt;
}

}  // namespace tocsin::collectors
