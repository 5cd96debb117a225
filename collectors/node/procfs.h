// Parsers of the kernel's text files: pure functions of what was read. A line that is damaged or
// cut off is left out; a file without a single usable line gives an empty result. Source: proc(5),
// the kernel's admin-guide/iostats and admin-guide/cgroup-v2.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tocsin::collectors {

/// /proc/stat, one line per processor, in clock ticks since boot. `user` contains guest time and
/// `nice` guest nice time, so the eight add up to all of it.
enum class CpuMode : std::size_t { user, nice, system, idle, iowait, irq, softirq, steal };
inline constexpr std::size_t kCpuModes = 8;
inline constexpr std::array<std::string_view, kCpuModes> kCpuModeNames{
    "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"};
struct CpuTimes {
  std::uint32_t cpu = 0;
  std::array<std::uint64_t, kCpuModes> ticks{};
};
/// Online processors only, in the file's order; kernels that lack the last columns give 0 there.
void parse_cpu_times(std::string_view text, std::vector<CpuTimes>& out);

/// /proc/meminfo in bytes. Absent lines are nullopt (MemAvailable before Linux 3.14).
struct Meminfo {
  std::optional<std::uint64_t> total, free, available, buffers, cached, slab_reclaimable;
};
Meminfo parse_meminfo(std::string_view text);

/// /proc/net/dev; `name` borrows from the text.
struct InterfaceBytes {
  std::string_view name;
  std::uint64_t received = 0;
  std::uint64_t transmitted = 0;
};
void parse_interfaces(std::string_view text, std::vector<InterfaceBytes>& out);

/// /proc/diskstats in bytes (a sector there is 512 bytes whatever the device's is); `name` borrows.
struct DiskBytes {
  std::string_view name;
  std::uint64_t read = 0;
  std::uint64_t written = 0;
};
void parse_disks(std::string_view text, std::vector<DiskBytes>& out);
/// False for partitions, loop, RAM and floppy devices, whose bytes another device counts too.
bool is_whole_disk(std::string_view name) noexcept;

/// /proc/<pid>/io: bytes that really went to and came from block devices.
struct ProcessIo {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
};
std::optional<ProcessIo> parse_process_io(std::string_view text);

/// "0-3,8,10-11" → 7; nullopt when damaged.
std::optional<std::uint32_t> count_cpu_list(std::string_view text);

/// `key value` lines, as in cpu.stat and memory.events.
std::optional<std::uint64_t> parse_keyed(std::string_view text, std::string_view key);
/// cpu.max: quota over period in processors; nullopt for "max" (no limit) or damage.
std::optional<double> parse_cpu_max(std::string_view text);
/// The v2 line of /proc/<pid>/cgroup ("0::/a/b" → "/a/b"); nullopt on a pure v1 host.
std::optional<std::string_view> parse_cgroup_path(std::string_view text);

}  // namespace tocsin::collectors
